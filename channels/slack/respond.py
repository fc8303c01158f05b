"""The address under which Slack takes answers to a command or a click, for one person to see: a few, for a while."""

from collections import deque
from typing import Any

# What Slack takes there: so many messages, for so many milliseconds.
_USES, _LIFE = 5, 30 * 60_000
# Addresses of the last answers are remembered.
_MOST = 1000


def handle_of(body: dict[str, Any], person: str, at: int) -> str:
    """What `InboundMessage.respond` is: the address, who may see what is sent there, and since when it is good."""
    address = str(body.get("response_url", ""))
    return f"{address} {person} {at}" if address else ""


class Addresses:
    """How often each was used, as far as is known: after a restart Slack itself refuses what is too much."""

    def __init__(self) -> None:
        self._used: deque[str] = deque(maxlen=_MOST)

    def good(self, handle: str, now: int) -> tuple[str, str]:
        """The address, empty where it takes no more, and the person. Raises ValueError for what is no handle."""
        address, person, at = handle.split(" ")
        good = now < int(at) + _LIFE and self._used.count(address) < _USES
        return address if good else "", person

    def used(self, address: str) -> None:
        """It has taken a message."""
        self._used.append(address)
