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
    """The clock that a channel uses."""

    # Milliseconds since the epoch.
    now: Callable[[], int]
    # Seconds.
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


class NotDownloaded(Exception):
    """A file cannot be downloaded; the text says why in plain words."""


class NotReadable(Exception):
    """The history of a conversation cannot be read. retry_after: seconds until it may be; None: never."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class NotAccepted(Exception):
    """The batch could not be stored: acknowledge nothing, keep the mark, offer the same events again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a channel supports."""

    # The most UTF-16 units that a block of Markdown may have so that it usually fits one message.
    block_chars: int
    # How often the typing sign must be renewed; 0 where there is none.
    typing_seconds: float
    # What the model is told about this channel: a few lines, the same for all conversations.
    rules: str
    # The actions that it carries out; it is asked for no others.
    actions: frozenset[Action] = frozenset({Action.SEND})
    # The size of the largest file that it sends, in bytes; 0 where it sends none.
    file_bytes: int = 0
    # Whether it has voice messages, as Ogg with Opus; else a spoken answer is a file.
    voice_messages: bool = False
    # Whether a preview in direct messages can be a draft.
    drafts: bool = False
    # The pattern of the ids of its messages.
    message_id: str = r"\S+"
    # Whether a native command is not a message of its chat: all messages of the answer can be shown to that person
    # alone, and no command can be typed in a thread.
    commands_apart: bool = False
    # For how many seconds after it was sent a message can be deleted; 0: always.
    deletes_within: int = 0
    # The prefix of a command: of one that the platform lists, and of any other.
    commands: tuple[str, str] = ("/", "/")


def rules_of(package: str | None) -> str:
    """What the model is told about a channel: the file `rules.md` in its package."""
    return (resources.files(package or "") / "rules.md").read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a channel has read (a poll offset), stored in the same transaction as the batch before it."""

    scope: str
    value: str


@dataclass(frozen=True, slots=True)
class Reached:
    """A conversation of which messages may have been missed."""

    place: Place
    # The id of its newest message; empty when the platform does not tell it.
    newest: str = ""
    # See `Origin.space`. It does not tell conversations apart.
    space: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a conversation's history, oldest first."""

    batch: Sequence[Incoming]
    # The id of the last message read, whether or not it is in the batch; empty when there was none.
    newest: str
    # Whether newer messages follow.
    more: bool


@dataclass(frozen=True, slots=True)
class CommandOption:
    """A parameter of a command: one word behind its name."""

    name: str
    help: str
    required: bool


@dataclass(frozen=True, slots=True)
class CommandInfo:
    """A command that people can type, for platforms that list them."""

    # Without the slash.
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
    """The state of a channel."""

    state: HealthState
    # When the state began, in milliseconds since the epoch.
    since: int
    # One plain sentence, or empty. When READY, the part behind `; ` says what it cannot do and where to change that.
    detail: str = ""


class Sink(Protocol):
    """The service as a channel sees it."""

    async def accept(self, batch: Sequence[Incoming], mark: Mark | None) -> None:
        """Store batch and mark in one transaction; raises NotAccepted when nothing of it was stored.

        Await nothing between receiving the batch and this call: the order of the calls is the order of the messages.
        """

    async def mark(self, scope: str) -> str | None:
        """The value of the last stored mark of that scope."""

    def missed(self, channel: str, account: str, reached: Sequence[Reached]) -> None:
        """Report that events of this account may have been missed until now: after a start, a break or a new session.

        To be called before the first event after the gap is accepted. reached: the conversations that the platform
        names; the service adds those that the store knows. The history of each is read by `History.history`, and live
        events wait until that is done.
        """

    def commands(self) -> Sequence[CommandInfo]:
        """What people can type, for the platform's own menu."""

    def can_send(self, channel: str, account: str) -> None:
        """Report that this account is known and can send: deliveries that wait for it (NotSent(None)) may be tried."""


class Surface(Protocol):
    """One account through which people talk to the bot. All methods are called on the event loop of the service."""

    name: str
    capabilities: Capabilities

    @property
    def account(self) -> str:
        """The bot's own id on the platform; empty until it is learned. Nothing is sent before."""

    async def start(self, sink: Sink) -> None:
        """Begin to receive. Returns once the receiving tasks run; a platform that is down is retried inside."""

    async def stop_intake(self) -> None:
        """Stop receiving; sends still work."""

    async def close(self) -> None:
        """Stop receiving and release all connections."""

    def health(self) -> Health:
        """The health of the account: READY only while events really arrive."""


@runtime_checkable
class Channel(Surface, Protocol):
    """One account on a platform, which carries out deliveries."""

    def render(self, text: str) -> Sequence[str]:
        """Render Markdown to the bodies of one or more sends, each within the platform's limits. Pure."""

    def pass_limit(self, place: Place) -> float:
        """Count one visible call in the rate limits and return 0.0, or return the seconds to wait first."""

    async def send(self, delivery: Delivery) -> SendResult:
        """Make the call of a delivery and return its outcome; never raises for what a platform or the network does."""

    async def settle(self, delivery: Delivery) -> SendResult:
        """Find out the outcome of a send that was Unknown; takes as long as the platform is away.

        Returns Sent when the message is there, NotSent when it is to be sent again after the given seconds, Unknown
        when nobody can find out and it must not be sent again. Cancelled when the service ends, and called again after
        its next start.
        """

    async def frame(self, place: Place, target: str, body: str) -> float:
        """Show one state of a preview in place of a message of the bot. Nobody waits for it, and failures are ignored.

        target: the platform's id of that message; empty to show a draft. Returns the seconds until the next frame may
        be shown; frames never use up the calls that deliveries need.
        """

    async def react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """Put a reaction to a message in the place of the one that stands there; failures are ignored.

        target: the platform's id of the message. before: the emoji of the bot's reaction so far.
        """

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """Carry out an action that makes no delivery, see `channels/actions.py`. Raises ActionFailed."""

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        """Find a conversation by an id, #channel or @person; returns similar names, for the model, when there is none.

        The sender of the origin of a direct conversation is the person. Raises ActionFailed.
        """

    async def working(self, place: Place) -> None:
        """Show the typing sign once; failures are ignored."""

    def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """Read the content of an attachment, piece by piece, only from the platform's own hosts.

        An expired reference is renewed once. Raises NotDownloaded.
        """


@runtime_checkable
class History(Channel, Protocol):
    """A channel whose platform has a history of each conversation.

    Ids of messages are ordered: the longer is the newer, of two equally long ones the greater.
    """

    async def history(self, place: Place, after: str, before: str, most: int) -> Page:
        """Read at most `most` messages after the id `after` and, unless it is empty, before the id `before`.

        They have the keys, kinds and fields of the live events. Raises NotReadable.
        """

    def position(self, at: int) -> str:
        """The least id that a message sent at that time (milliseconds since the epoch) can have."""


@runtime_checkable
class Threaded(Channel, Protocol):
    """A channel whose threads begin with a message of the chat."""

    async def around(self, place: Place, before: str, most: int) -> Sequence[Incoming]:
        """Read the first message of a thread and the last `most` messages in it before the id `before`, oldest first.

        The bot's own messages are included. Raises NotReadable.
        """
