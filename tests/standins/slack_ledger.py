"""What the Slack stand-in remembers and what it holds against its client. See `ledger`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.standins import ledger
from tests.standins.ledger import Violation

Json = dict[str, Any]


class Rule(StrEnum):
    """The rules a client must keep; a test that breaks one on purpose tolerates it."""

    FORMATTING = "text, blocks and metadata are never rejected"
    UNESCAPED = "& and < in mrkdwn are written as &amp; and &lt; unless they begin a link or a mention"
    EARLY = "no call before Retry-After has ended"
    UNKNOWN_ARGUMENT = "no argument that the documentation does not know"
    UNKNOWN_METHOD = "no method that this server does not know"
    BAD_VALUE = "every argument has the type and range of the documentation, in a body that the method reads"
    BAD_TOKEN = "every call carries a token of the kind that the method takes"
    TOKEN_LEAK = "no token or secret in anything but the Authorization header"
    REPEATED_TEXT = "no text twice in one conversation"
    MASS_PING = "no message pings a whole channel"
    BAD_ACK = "every acknowledgement names an envelope of its connection, once, with a payload only where one is taken"
    UNANSWERED = "every command and every click is acknowledged within three seconds"
    LATE_STATUS = "no status stays below a thread after the last message of a turn"
    RESPONSE_URL = "a response_url is used for 30 minutes and five times"
    PUBLIC_DOWNLOAD = "files are downloaded with the token"
    FAULT_NOT_FIRED = "every ordered fault happens"


class Refusal(Exception):
    """`{"ok": false, "error": …}`; with `rule` it is also a violation, `more` stands beside the error."""

    def __init__(
        self, error: str, *, status: int = 200, rule: Rule | None = None, messages: Iterable[str] = (), **more: Any
    ) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.rule = rule
        self.messages = list(messages)
        self.more = more

    def body(self) -> Json:
        """The documented error object."""
        answer: Json = {"ok": False, "error": self.error, **self.more}
        if self.messages:
            answer["response_metadata"] = {"messages": self.messages}
        return answer

    @property
    def retry_after(self) -> int | None:
        """Seconds, of a refusal with status 429."""
        return self.more.get("retry_after") if self.status == 429 else None


def too_many(seconds: int) -> Refusal:
    """The documented 429; the header is made of `retry_after`."""
    return Refusal("ratelimited", status=429, retry_after=seconds)


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived; `url` has no token in it, `at` is the server's clock in seconds."""

    method: str
    url: str
    args: Json
    at: float


@dataclass(frozen=True, slots=True)
class Sent:
    """One accepted call that a person can see: a message, an edit, a deletion, a reaction or a file.

    `method` is the Web API's, or "response_url" or "ack" for the other ways to say something. `text` is the text
    as it was sent, `shown` what a person reads: the blocks' text where there are blocks. `pings` are user ids,
    "S…" of groups and "channel", "here", "everyone"; `fetched` are the addresses that Slack would load for a
    preview. `only_to` is the user id of an ephemeral message.
    """

    method: str
    channel: str
    ts: str
    text: str
    args: Json
    at: float
    shown: str = ""
    thread_ts: str | None = None
    blocks: list[Json] = field(default_factory=list)
    metadata: Json | None = None
    pings: frozenset[str] = frozenset()
    fetched: tuple[str, ...] = ()
    only_to: str | None = None


SAYING = ("chat.postMessage", "response_url", "ack")


@dataclass(kw_only=True)
class Ledger(ledger.Ledger[Rule, Call, Sent]):
    """The server's memory; `secrets` must never be seen in a call."""

    secrets: tuple[str, ...]

    def _story_broken(self) -> Iterable[Violation]:
        posts = (((one.channel, one.thread_ts), one.shown) for one in self.sent if one.method in SAYING)
        yield from self._repeated(Rule.REPEATED_TEXT, posts)
        for call in self.calls:
            if any(secret in call.url or secret in repr(call.args) for secret in self.secrets):
                yield Violation(Rule.TOKEN_LEAK, f"{call.method} carries a secret in its query or arguments")
        for one in self.sent:
            if mass := one.pings & {"channel", "here", "everyone"}:
                yield Violation(Rule.MASS_PING, f"{one.method} in {one.channel}: {', '.join(sorted(mass))}")

    def _line(self, call: Call) -> str:
        return f"{call.method} {str(call.args)[:160]}"
