"""What a channel is to the service, and what the service is to a channel.

A channel turns platform events into `Incoming` values for its `Sink` and makes the platform calls it is asked for.
Policy (access, order, retries, rate of blocks) is the service's; translation is the channel's.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from typing import Protocol, runtime_checkable

from channels.actions import Arguments
from channels.message import Attachment, Incoming, Origin, Place
from channels.outgoing import Action, Delivery, SendResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Time as it is given to a channel. now: milliseconds since the epoch. monotonic: seconds. sleep: seconds."""

    now: Callable[[], int]
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


class NotDownloaded(Exception):
    """A file cannot be had; says why in plain words."""


class NotReadable(Exception):
    """The history of a conversation cannot be read. retry_after: seconds until it may be; None: never."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class NotAccepted(Exception):
    """The batch could not be stored: acknowledge nothing, keep the mark, offer the same events again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a channel can carry.

    block_chars: the most UTF-16 units one block of Markdown may have so that it usually is one message.
    typing_seconds: how often the sign of work must be renewed; 0 where there is none. rules: what the model is told
    about this channel, a few lines, the same for all conversations. actions: what it can be asked to carry out; it is
    never asked for another one. file_bytes: how large a file may be that it sends; 0 where it sends none. drafts:
    in direct messages a preview can be a draft. message_id: the pattern of the ids of its messages. commands_apart: a
    native command is no message of its chat: every message of the answer can be shown to that person alone, and none
    can be typed in a thread. commands: what people type before the name of a command: of one that the platform lists,
    and of another.
    """

    block_chars: int
    typing_seconds: float
    rules: str
    actions: frozenset[Action] = frozenset({Action.SEND})
    file_bytes: int = 0
    drafts: bool = False
    message_id: str = r"\S+"
    commands_apart: bool = False
    commands: tuple[str, str] = ("/", "/")


def rules_of(package: str | None) -> str:
    """What the model is told of a channel: `rules.md` in its folder."""
    return (resources.files(package or "") / "rules.md").read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a channel has read (a poll offset), stored in the same transaction as the batch before it."""

    scope: str
    value: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A conversation in which something may have been said unheard. newest: id of its newest message, if it is told.
    space: what it lies in, as of `Origin`; it is no other conversation by that."""

    place: Place
    newest: str = ""
    space: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a conversation's history, oldest first.

    newest: id of the last message read, whether or not it is in the batch; empty when there was none. more: there is
    more behind it.
    """

    batch: Sequence[Incoming]
    newest: str
    more: bool


@dataclass(frozen=True, slots=True)
class CommandOption:
    """A word behind a command."""

    name: str
    help: str
    required: bool


@dataclass(frozen=True, slots=True)
class CommandInfo:
    """A command that people can type, for platforms that list them. name: without the slash."""

    name: str
    help: str
    options: tuple[CommandOption, ...]


class HealthState(StrEnum):
    """STARTING and DOWN make `/readyz` red; READY means that events are really received."""

    STARTING = "starting"
    READY = "ready"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Health:
    """State of a channel, since when (milliseconds), and one plain sentence where there is something to say.

    Behind `; ` in the detail of a READY one stands what it cannot do, with the place where that is changed.
    """

    state: HealthState
    since: int
    detail: str = ""


class Sink(Protocol):
    """What a channel may ask of the service."""

    async def accept(self, batch: Sequence[Incoming], mark: Mark | None) -> None:
        """Store batch and mark in one transaction; raises NotAccepted when nothing of it was stored.

        Await nothing between receiving the batch and this call: the order of the calls is the order of the messages.
        """

    async def mark(self, scope: str) -> str | None:
        """The value of the last stored mark of that scope."""

    def missed(self, channel: str, account: str, reached: Sequence[Reached]) -> None:
        """Events of this account may have been missed until now: at its start, after a break, after a new session.

        To be called before the first event behind the gap is accepted. reached: the conversations that the platform
        names; those that the store knows are added. The history of each is read by `History.history`, and what comes
        live meanwhile waits behind it.
        """

    def commands(self) -> Sequence[CommandInfo]:
        """What people can type, for the platform's own menu."""

    def can_send(self, channel: str, account: str) -> None:
        """This account is known and can send: what waited for it (also by NotSent(None)) may be tried."""


class Surface(Protocol):
    """Where people talk to the bot: one account. All methods are called on the event loop of the service."""

    name: str
    capabilities: Capabilities

    @property
    def account(self) -> str:
        """The bot's own id on the platform; empty until start has learned it, and nothing is sent before."""

    async def start(self, sink: Sink) -> None:
        """Begin to receive. Returns once the receiving tasks run; a platform that is down is retried inside."""

    async def stop_intake(self) -> None:
        """Receive nothing more; sends still work."""

    async def close(self) -> None:
        """Release everything."""

    def health(self) -> Health:
        """How it stands; must be true: READY only while events really arrive."""


@runtime_checkable
class Channel(Surface, Protocol):
    """One platform account, to which deliveries are made."""

    def render(self, text: str) -> Sequence[str]:
        """Markdown to the bodies of one or more sends, each within the platform's limit. Pure."""

    def pass_limit(self, place: Place) -> float:
        """Take a place in the rate limits for one visible call: 0.0 when granted, else seconds to wait first."""

    async def send(self, delivery: Delivery) -> SendResult:
        """Make the call; never raises for what a platform or the network does."""

    async def settle(self, delivery: Delivery) -> SendResult:
        """Find out what became of a send whose outcome was Unknown; may take as long as the platform is away.

        Sent: it is there. NotSent: it is to be made again, after the seconds told. Unknown: nobody will ever know, and
        it must not be made again. Cancelled when the service ends; asked again after its next start.
        """

    async def frame(self, place: Place, target: str, body: str) -> float:
        """Show a body in place of a message of the bot, while the rest of it is being written; nobody waits for it.

        target: platform id of that message; empty: as a draft. Returns after how many seconds the platform takes
        another one: it is within a budget that visible calls are never short of. What fails is ignored.
        """

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """Carry out an action that is no delivery, see `channels/actions.py`. Raises ActionFailed."""

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        """The conversation that is meant by an id, #channel or @person; else names that come near, for the model.

        Of a direct one the sender is who is written to. Raises ActionFailed.
        """

    async def working(self, place: Place) -> None:
        """Show once that the bot is at work there; failures are ignored."""

    def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """The content of a file that came with a message, piece by piece, from the platform's own hosts alone.

        An expired reference is renewed once. Raises NotDownloaded.
        """


@runtime_checkable
class History(Channel, Protocol):
    """A channel whose platform can be asked what was said while nobody listened. Ids of messages are in order: the
    longer is the newer, of two equally long ones the greater."""

    async def history(self, place: Place, after: str, before: str, most: int) -> Page:
        """Messages behind `after` and, unless it is empty, before `before`; at most `most` where there are more.

        As events: with the keys, kinds and fields that the live ones have. Raises NotReadable.
        """

    def position(self, at: int) -> str:
        """The id that a message of that moment (milliseconds) would have at the least."""


@runtime_checkable
class Threaded(Channel, Protocol):
    """A channel whose threads hang on a message."""

    async def around(self, place: Place, before: str, most: int) -> Sequence[Incoming]:
        """The message that a thread hangs on, and the last `most` that were said in it before one, oldest first; also
        the bot's own. Raises NotReadable."""
