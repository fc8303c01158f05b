"""Values to stored JSON and back, by pydantic. Stored JSON is never rewritten, so these types may only gain fields."""

from collections.abc import Iterable
from typing import Generic, TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError

from agent.message import Message, Provenance, Usage, merged
from agent.prompt.build import Prompt
from agent.tools.base import Ask
from bot.persistence.settings import SessionSettings
from channels.message import InboundMessage, Origin
from channels.outgoing import Button, OutgoingFile
from heartbeat.schedule import Schedule

log = structlog.get_logger()

T = TypeVar("T")
D = TypeVar("D")


class Stored(Generic[T]):
    """Converts values of one type to JSON and back."""

    def __init__(self, of: type[T]) -> None:
        self._adapter = TypeAdapter(of)

    def dump(self, value: T) -> str:
        """Return a value as JSON."""
        return self._adapter.dump_json(value).decode()

    def load(self, text: str | None, otherwise: D) -> T | D:
        """Return the value of a JSON text; `otherwise` if there is no text or it is damaged."""
        try:
            return self._adapter.validate_json(text) if text else otherwise
        except ValidationError:
            return otherwise


INBOUND = Stored(InboundMessage)
MESSAGE = Stored(Message)
USAGE = Stored(Usage)
PROMPT = Stored(Prompt)
BUTTONS = Stored(tuple[Button, ...])
FILE = Stored(OutgoingFile)
SETTINGS = Stored(SessionSettings)
ORIGIN = Stored(Origin)
ASK = Stored(Ask)
ORIGINS = Stored(tuple[Provenance, ...])
SCHEDULE: Stored[Schedule] = Stored(Schedule)  # type: ignore[arg-type]


# The origins of text of which they cannot be read.
UNREADABLE = (Provenance("background", "something that cannot be read"),)


def read_inbound(text: str, seq: int) -> InboundMessage | None:
    """Return the message of a payload; if that is damaged, return None and log `seq`, its position in the inbox."""
    message = INBOUND.load(text, None)
    if message is None:
        log.error("an accepted message cannot be read", seq=seq)
    return message


def origins(text: str) -> tuple[Provenance, ...]:
    """Return stored origins; what cannot be read is not trusted."""
    return ORIGINS.load(text, UNREADABLE if text else ())


def bears(bodies: Iterable[str]) -> tuple[Provenance, ...]:
    """Return the origins that stored lines bear together; a line that cannot be read is not trusted."""
    unread = Message("user", (), origins=UNREADABLE)
    return merged(one for body in bodies for one in MESSAGE.load(body, unread).all_origins)
