"""Long pastes: a client cuts what does not fit a message, and sends the pieces one directly after the other."""

from dataclasses import replace

from channels.message import InboundKind, InboundMessage, Incoming
from channels.utf16 import units

# UTF-16 units from which on a message may go on in the next one; clients cut at 4,096 or a little before.
_LONG = 4000
# Milliseconds within which the next piece was sent.
_GAP = 2000


class Pastes:
    """Finds the pieces of one paste, also those that come in another batch: they carry the same `part_of`."""

    def __init__(self) -> None:
        self._last: InboundMessage | None = None

    def joined(self, item: Incoming) -> Incoming:
        """The message as a piece of the paste that the one before it began, or as the beginning of one."""
        if not isinstance(item, InboundMessage) or item.kind is not InboundKind.MESSAGE or item.attachments:
            return item
        last, origin = self._last, item.origin
        if last is not None and _goes_on(last, item):
            item = replace(item, part_of=last.part_of)
        elif units(item.text) >= _LONG:
            item = replace(item, part_of=f"paste:{origin.message_id}")
        self._last = item if units(item.text) >= _LONG else None
        return item


def _goes_on(last: InboundMessage, item: InboundMessage) -> bool:
    same = (last.origin.place, last.origin.sender) == (item.origin.place, item.origin.sender)
    follows = int(item.origin.message_id) == int(last.origin.message_id) + 1
    return same and follows and item.sent_at - last.sent_at <= _GAP and not item.forwarded
