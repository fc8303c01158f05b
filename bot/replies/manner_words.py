"""What a conversation is told of the manners that a platform refused, where it matters to the people there."""

from collections.abc import Callable, Sequence

from bot.persistence.deliveries import OwnerNotice
from channels.manners import Manner
from channels.outgoing import Delivery, Planned
from channels.sources import Source, of_turn

_WORDS = {
    Manner.THREAD: "I couldn't write in that topic or thread, so I've answered here.",
    Manner.VOICE: "I can't send voice messages here, so I've sent mine as a file.",
}


def given_up(
    delivery: Delivery, lost: Sequence[str], notice: Callable[[Source, str, str], Sequence[Planned]]
) -> OwnerNotice | None:
    """Make what the conversation of a delivery is told, once for a turn, however many messages it has."""
    told = [one for one in _WORDS if one in lost]
    if not told or not delivery.turn_id:
        return None
    source, text = of_turn(delivery.turn_id, "manners", *told), " ".join(_WORDS[one] for one in told)
    return OwnerNotice((), delivery.place, lambda where: notice(source, text, where.channel))
