"""The sections of what the bot does unasked (beats of the heartbeat, schedules), and of what it asks people first."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from bot.config.values import EndOfHours, ModelName, Person, Seconds, Span, Thinking, TimeOfDay, Zone
from channels.registry import platforms
from channels.section import Section, Whole, refused, setting
from channels.session_key import parse
from channels.settings import AccountSection, Beats, ChannelSection
from heartbeat.checklist import DEFAULT
from heartbeat.gate import Budget

_SUM = r"\d{1,6}(?:\.\d{1,4})?"
_BUDGET = re.compile(rf"(?P<tokens>\d{{1,12}})|\$ ?(?P<sign>{_SUM})|(?P<word>{_SUM}) ?USD", re.ASCII)


def _to_budget(value: object) -> object:
    if isinstance(value, Budget):
        return value
    found = _BUDGET.fullmatch(str(value))
    amount = float(found[found.lastgroup or 0]) if found else 0
    if not found or not amount:
        raise refused("a whole number of tokens, or money such as $2 or 2 USD; more than nothing")
    return Budget(amount, "tokens" if found["tokens"] else "USD")


def _show_budget(budget: Budget) -> int | str:
    return int(budget.amount) if budget.unit == "tokens" else f"${budget.amount:.12g}"


def _to_interval(value: object) -> object:
    return timedelta(0) if value in (0, "0") and not isinstance(value, bool) else value


def _check_interval(value: timedelta) -> timedelta:
    if value and value < timedelta(seconds=1):
        raise refused("at least 1s, or 0 for no beats")
    return value


def _reached() -> tuple[str, ...]:
    return tuple(name for name in platforms() if name not in ("console", "http"))


def _a_chat() -> str:
    return f"<channel>:<chat> with one of {', '.join(_reached())}"


def _is_chat(value: str) -> bool:
    channel, _, chat = value.partition(":")
    return channel in _reached() and bool(chat.strip())


def _check_target(value: str) -> str:
    if value not in ("last", "none") and not _is_chat(value):
        raise refused(f"last, none, or {_a_chat()}")
    return value


def _check_chat(value: str) -> str:
    if not _is_chat(value):
        raise refused(_a_chat())
    return value


def _check_session(value: str) -> str:
    try:
        key = parse(value)
    except ValueError:
        key = None
    if key is None or key.base != value or key.kind == "job":
        raise refused("the key of a conversation, such as agent:main:main or agent:main:<channel>:direct:<id>")
    return value


class ActiveHours(Section):
    """The hours of the day in which it beats; the same start and end is never."""

    start: TimeOfDay = setting(0, "From this time on.")
    end: EndOfHours = setting(24 * 60, "Until this time; before start means on the next day.")
    timezone: Zone = setting("", "Such as Europe/Berlin; without it that of this machine.")


class Heartbeat(Section):
    """When it looks by itself whether something needs attention, and who is told."""

    every: Annotated[
        Span,
        BeforeValidator(_to_interval),
        AfterValidator(_check_interval),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"const": 0}]}),
    ] = setting(timedelta(minutes=30), "Time between two beats; 0 is off.")
    prompt: str = setting(DEFAULT, "What a beat is asked.", min_length=1)
    active_hours: ActiveHours = setting(ActiveHours(), "When it beats.")
    target: Annotated[str, AfterValidator(_check_target)] = setting(
        "last", "Where alerts go: where its session last was, none, or <channel>:<chat>."
    )
    session: Annotated[str, AfterValidator(_check_session)] | None = setting(
        None, "Whose session beats; without it the direct one in which an owner wrote last."
    )
    model: ModelName | None = setting(None, "provider/model; without it that of the agent.")
    thinking: Thinking | None = setting(None, "As that of the agent; without it the same.")
    isolated: bool = setting(True, "Beat without the history of the session.")
    light_context: bool = setting(True, "Give a beat HEARTBEAT.md alone of the workspace's files.")
    ack_max_chars: Whole = setting(300, "With at most so many characters beside HEARTBEAT_OK an answer is quiet.", ge=0)
    show_ok: bool = setting(False, "Whether quiet answers are shown, as HEARTBEAT_OK.")
    show_alerts: bool = setting(True, "Whether all other answers are shown.")
    daily_budget: Annotated[
        Budget,
        BeforeValidator(_to_budget),
        PlainSerializer(_show_budget, return_type=int | str),
        WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
    ] = setting(Budget(300_000, "tokens"), "What beats may cost in a day: tokens, or money such as $2.")
    timeout_seconds: Seconds = setting(300, "Running time of one beat.", gt=0)

    def shown_by(self, section: ChannelSection | None) -> Beats:
        """What of it is shown on an account, by its section: what that does not say is as here."""
        general = Beats(show_ok=self.show_ok, show_alerts=self.show_alerts)
        if not isinstance(section, AccountSection):
            return general
        said = section.heartbeat.model_dump(exclude_none=True)
        return general.model_copy(update=said)


class Schedules(Section):
    """Reminders and jobs."""

    max_concurrent: Whole = setting(2, "How many jobs may run at the same time.", ge=1)


class Approvals(Section):
    """What a person has to allow before it is done."""

    timeout_seconds: Seconds = setting(1800, "How long a request waits for a decision.", ge=1)
    approvers: tuple[Person, ...] = setting((), "Who may decide; without any the owners may.")
    forward_to: Annotated[str, AfterValidator(_check_chat)] | None = setting(
        None, "<channel>:<chat> where requests are shown, instead of the conversation that asks."
    )
