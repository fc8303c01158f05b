"""The reaction that says: seen, I am on it. Planned with the message, taken away when its turn ends."""

from channels.message import ChatKind, InboundKind, InboundMessage
from channels.outgoing import Action, Planned
from channels.settings import Acknowledgement


def acknowledge(message: InboundMessage, wanted: Acknowledgement) -> tuple[Planned, ...]:
    """The reaction to a message that is going to be answered; none where it is not wanted or cannot be."""
    place = message.origin.place
    direct = place.kind is ChatKind.DIRECT
    in_scope = {"direct": direct, "mention": not direct and message.mentioned, "all": True}[wanted.scope]
    target = message.origin.message_id
    if not wanted.emoji or not in_scope or not target or message.kind is not InboundKind.MESSAGE:
        return ()
    source = f"ack:{place.channel}:{place.account}:{message.event_key}"  # the end of a turn finds it by that
    return (Planned(source=source, body=wanted.emoji, nonce=0, action=Action.REACT, target=target),)
