"""What hooks are asked and told about the deliveries of the outbox."""

from agent.hooks import Hooks
from bot.hooks.points import MessageSending, MessageSent
from channels.outgoing import Action, Delivery, DeliveryState, Sent

# The points, by name.
SENDING, SENT = MessageSending.point, MessageSent.point
# Deliveries that show words or files; the others are reactions and deletions.
_SHOWS = (Action.SEND, Action.PREVIEW, Action.EDIT, Action.FILE)


async def forbids(hooks: Hooks, delivery: Delivery) -> bool:
    """Whether a hook forbids to send a delivery; they are not asked about one that was begun."""
    if delivery.action not in _SHOWS or delivery.state is not DeliveryState.PLANNED:
        return False
    return (await hooks.ask(MessageSending(**_fields(delivery))))[1] is not None


def sent(hooks: Hooks, delivery: Delivery, result: Sent) -> None:
    """Tell hooks of a delivery that was sent."""
    if delivery.action in _SHOWS:
        hooks.tell(MessageSent(**_fields(delivery), message_id=result.platform_id))


def _fields(delivery: Delivery) -> dict[str, str]:
    place, file = delivery.place, delivery.file
    return {
        "channel": place.channel,
        "account": place.account,
        "chat": place.chat,
        "thread": place.thread,
        "turn_id": delivery.turn_id or "",
        "action": delivery.action.value,
        "text": delivery.said or (file.says if file else ""),
        "body": delivery.body,
        "file": file.name if file else "",
        "path": file.path if file else "",
    }
