"""What people are told: every plain sentence of the service in one place, for tone and so that nothing leaks."""

import json
import re
from collections.abc import Callable, Sequence

from agent.errors import ErrorKind
from agent.message import Usage
from bot.persistence.causes import Cause
from bot.persistence.deliveries import LostDelivery
from bot.persistence.people import Person, Settled
from bot.persistence.recovery import Salvage
from bot.persistence.schedules import Job
from bot.speech import called
from bot.telemetry.redact import mask_text
from channels.markdown.quoting import outside_code
from channels.message import Origin, Place
from channels.outgoing import Action, DeliveryState
from heartbeat.checklist import Mistake

_MODEL_ERRORS = {
    ErrorKind.RATE_LIMIT: "The model's provider is limiting requests right now. Please try again in a few minutes.",
    ErrorKind.OVERLOADED: "The model's provider is overloaded right now. Please try again in a few minutes.",
    ErrorKind.AUTH: "The model's provider did not accept the API key. Whoever runs this bot has to check it.",
    ErrorKind.BILLING: "The account at the model's provider has run out of credit. Whoever runs this bot can add some.",
    ErrorKind.CONTEXT_OVERFLOW: "This conversation is too long for the model. /new starts a fresh one.",
    ErrorKind.THINKING_UNSUPPORTED: "The model does not support the configured thinking level.",
    ErrorKind.MODEL_NOT_FOUND: (
        "The model's provider does not know the configured model. "
        "Whoever runs this bot has to check its name and the provider's address."
    ),
    ErrorKind.REGION: (
        "The model's provider does not serve the region this bot runs in. Whoever runs it can choose another provider."
    ),
    ErrorKind.INVALID_REQUEST: (
        "The model's provider did not accept the request. /model chooses another model; the log says more."
    ),
    ErrorKind.TIMEOUT: "That took too long, so I stopped. Please try again, or ask for a smaller step.",
    ErrorKind.NETWORK: "I could not reach the model. Please try again in a moment.",
    ErrorKind.CONTENT_FILTER: "The model declined to answer that.",
    ErrorKind.OWNERS_ONLY: "The model chosen here answers owners alone, and not only owners wrote this.",
    ErrorKind.UNSAFE: "The model is a program that cannot run safely here. Whoever runs this bot finds why in its log.",
    ErrorKind.UNKNOWN: "The model gave no usable answer. Please try again.",
}

# What follows an answer that did not come to its own end, by stop reason.
ENDED_EARLY = {
    "max_output": "(The answer was cut off at the model's limit of output.)",
    "refusal": "(The model's provider ended the answer here.)",
}
# Commands that platforms list, and the others, as sentences of the service name them.
LISTED = (
    *("help", "commands", "start", "status", "whoami", "stop", "abort", "retry", "new", "reset", "verbose"),
    *("reasoning", "tools", "approve", "approvals", "model", "models", "think", "context", "compact", "usage"),
    *("queue", "undo", "redo", "fork", "activation", "memory", "voice"),
)
UNLISTED = (
    *("answer", "pairing", "schedule", "heartbeat", "people", "allowlist", "budget", "why", "freeze", "thaw", "send"),
    *("restart", "config", "sessions", "export", "skills", "skill", "subagents", "reanswer"),
)
_COMMAND = re.compile(rf"(?<![\w/.:~-])/({'|'.join((*LISTED, *UNLISTED))})(?![\w/-]|\.\w)")
INTERNAL_ERROR = "Something went wrong on my side, and I could not finish this. Please try again; the log says more."
EDITED_AFTERWARDS = "You have edited your question since I answered it."
EDITED_MEANWHILE = "I am still answering the first version; I will look at your edit next."
CHOOSE = "Please choose:"
# What has become of a request, by the verdict and by the event.
DECIDED = {
    "allowed": "✓ Allowed",
    "once": "✓ Allowed once",
    "always": "✓ Allowed always",
    "denied": "✗ Denied",
    "answered": "✓ Answered",
    "expired": "⌛ Nobody decided in time",
}
# People named in one notice; the others are counted.
MOST_NAMED = 10
# Characters of what a call is about, or of its error, on its one line.
_LONGEST = 72
TERMINAL_KEYS = (
    "Alt-Enter begins a new line. What you type while I work is answered next. Esc or Ctrl-C stops me. `/quit` leaves."
)
CRASHED_TWICE = (
    "I was interrupted twice while working on your last message, so I have stopped trying. "
    "Send it again if you still need it."
)
JOB_CRASHED_TWICE = "I was interrupted twice while working on it."


# Errors that say nothing of the service: whoever wrote may wait, shorten or ask differently.
_FOR_EVERYBODY = (
    *(ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.TIMEOUT, ErrorKind.NETWORK),
    *(ErrorKind.CONTEXT_OVERFLOW, ErrorKind.CONTENT_FILTER, ErrorKind.OWNERS_ONLY, ErrorKind.UNKNOWN),
)
OUT_OF_ORDER = "I cannot answer at the moment. Whoever runs this bot finds the reason in its log."
_CODE = re.compile("(`[^`]*`)")


def typed(text: str, signs: tuple[str, str]) -> str:
    """A text of the service with its commands as people type them on a platform; other code stays as it is. signs: see
    `Capabilities.commands`."""

    def change(line: str) -> str:
        pieces = _CODE.split(line)  # every second one is code
        pieces[::2] = map(typed_in, pieces[::2])
        return "".join(typed_in(piece) if piece.startswith("`/") else piece for piece in pieces)

    def typed_in(words: str) -> str:
        return _COMMAND.sub(lambda found: signs[found[1] in UNLISTED] + found[1], words)

    return text if signs == ("/", "/") else outside_code(text, change)


def failure(kind: str | None, cause: str | None = None, *, to_owner: bool = True) -> str:
    """One plain sentence about why a run failed. cause: behind it, for owners; others learn nothing of the service."""
    if kind == "crash":
        return CRASHED_TWICE
    try:
        found = ErrorKind(kind or "")
    except ValueError:
        return INTERNAL_ERROR if to_owner else OUT_OF_ORDER
    if not to_owner:
        return _MODEL_ERRORS[found] if found in _FOR_EVERYBODY else OUT_OF_ORDER
    return f"{_MODEL_ERRORS[found]}\n\n{cause}" if cause else _MODEL_ERRORS[found]


GIVEN_UP = "No model has answered for so long that I have given up on your message. Send it again if you still need it."


def outage(kind: ErrorKind, seconds: float, cause: str, *, to_owner: bool) -> str:
    """What people are told when no model answers; in so many seconds they may expect one. cause: words for owners."""
    why, _, _ = (_MODEL_ERRORS[kind] if to_owner or kind in _FOR_EVERYBODY else OUT_OF_ORDER).partition(".")
    span = f"{round(seconds / 60 + 0.25)} minutes" if seconds > 75 else "a minute"
    said = f"{why}. I have kept your message and answer by myself, most likely in about {span}; /stop drops it."
    return f"{said}\n\n{cause}" if cause else said


def answers_instead(wanted: str, other: str) -> str:
    """What people are told once when another model answers than the wanted one."""
    return f"(`{wanted}` does not work at the moment; `{other}` answers.)"


def answers_again(wanted: str) -> str:
    """What people are told when the wanted model is back."""
    return f"(`{wanted}` answers again.)"


def thinks_less(model: str, level: str, *, refused: bool) -> str:
    """What people are told once when a model has refused a level of thinking, or is known to lack it."""
    return f"(`{model}` {'refused' if refused else 'lacks'} the level of thinking; it answers with {level}.)"


def tool_failed(tool: str, cause: str) -> str:
    """What follows an answer when something was to be changed and was not. cause: what the tool said to the model."""
    first, _, _ = cause.partition("\n")
    return f"(`{tool}` failed: {first.strip('[].')[:300]}.)"


def job_failed(job: Job, failure: str) -> str:
    """What people are told of a run of a job that fails: once until one does not, else nothing."""
    again = "It is tried again; further failures are only in its history."
    return "" if job.failures else f"The scheduled job {job.name!r} failed. {again}\n\n{failure}"


def job_passed_over(name: str, reason: str) -> str:
    """A job that was due once could not run."""
    return f"The scheduled job {name!r} was due and did not run ({reason}). `/schedule` can run or delete it."


def failed_elsewhere(place: Place, kind: str | None, cause: str | None) -> str:
    """What an owner is told of a run that failed where others read."""
    return f"An answer on {place.channel} (chat {place.chat}) failed. {failure(kind, cause)}"


NOTHING_USED = "No model has been asked within seven days."


def dollars(money: float) -> str:
    """US dollars; small sums with four digits."""
    return f"${money:,.2f}" if money >= 1 or not money else f"${money:.4f}"


def used(usage: Usage, money: float | None) -> str:
    """What a turn has used, on one line."""
    cost = f", {dollars(money)}" if money else ""
    return f"{usage.input:,} tokens in, {usage.output:,} out{cost}"


def hello(name: str) -> str:
    """The answer to /start."""
    return f"Hello, I am {name}. Write to me as to anybody; /help lists what else you can type."


def refused(place: Place, reason: str) -> str:
    """What an owner is told of a message that a platform refused for good."""
    told = f"{place.channel.capitalize()} refused a message to chat {place.chat}, so it was not delivered"
    return f"{told}: {reason}. /status lists such messages; I tell of each reason at most once an hour."


def file_not_sent(reason: str) -> str:
    """Instead of a file that an answer wanted to be sent."""
    return f"(A file could not be sent: {reason.rstrip('.')}.)"


def lacks(action: Action) -> str:
    """Why a platform call is refused that its channel does not make."""
    return f'it cannot carry out the action "{action.value}"'


def lost(found: LostDelivery, when: str) -> str:
    """A message that did not arrive, or may not have, on one line."""
    word = {DeliveryState.FAILED: "refused", DeliveryState.EXPIRED: "not delivered"}.get(found.state, "uncertain")
    reason = "older than `delivery.max_age`" if found.cause is Cause.AGE else found.error or found.cause
    return f"{found.channel} chat {found.chat}, {when}, {word}: {reason}"


def missed(when: str) -> str:
    """What a conversation is told once something arrives there again."""
    return f"Of what I wrote here at {when} or later, something may not have arrived. Ask again if you miss an answer."


def recovered(found: Salvage) -> str:
    """What came over of a store that was damaged."""
    if not (count := sum(found.rows.values())):
        return "nothing of it could be read, so a new store was begun"
    return f"{count} rows recovered" + (f", not all of {', '.join(found.lost)}" if found.lost else "")


def salvaged(found: Salvage) -> str:
    """What an owner is told of a store that was found damaged."""
    return f"The store was damaged ({found.problem}): {recovered(found)}. The damaged file is kept as {found.kept_as}."


def away(when: str) -> str:
    """What somebody is told whose messages were too old to be answered when they were found."""
    return f"I was away; messages from before {when} were not read."


NOT_SHOWN = "[not shown]"
UNREAD = (
    "I was away, and have not read what was written here meanwhile: that was in too many conversations. Please write "
    "again what still matters."
)


def pairing_code(code: str) -> str:
    """What a stranger is told, once."""
    return (
        f"I do not know you yet. Tell whoever runs this bot this code: `{code}`\n\n"
        "It is good for an hour. Once they approve it, I answer what you wrote."
    )


# What they are told when they write once more before that.
KEPT = "I have kept that as well. Once you are let in, I answer all that you wrote."


def ask_to_write(found: Sequence[Person], *, someone: bool) -> str:
    """What an owner is told of those who were given a code. someone: there is an owner already."""
    who = ", ".join(stranger(one) for one in found[:MOST_NAMED])
    count = f"{len(found)} people ask" if len(found) > 1 else "Somebody asks"
    owner = "" if someone else ", with `--owner` behind it in a shell as an owner"
    return (
        f"{count} to write to me and got a code: {who}. `/pairing approve CODE` here, or `hark pairing approve CODE` "
        f"in a shell, lets in who tells you theirs{owner}."
    )


def group_not_let_in(origin: Origin, label: str) -> str:
    """What an owner is told who named the bot where it is not to answer. label: of the account."""
    channel, _, account = label.partition(":")
    path = f"channels.{channel}.accounts.{account}" if account else f"channels.{channel}"
    where = f"the chat {called(origin.chat_name)} ({origin.place.chat})" if origin.chat_name else origin.place.chat
    return (
        f"You named me on {channel.capitalize()} in {where}, which is not let in, so I say nothing there. To let it "
        f'in, write `"{origin.place.chat}": {{}}` below `{path}.groups.allow` in the configuration, and start me again.'
    )


def welcome(owner: bool) -> str:
    """What somebody is told who was let in."""
    return "You are an owner of this bot now." if owner else "You are let in. Welcome!"


NOBODY_WAITS = "Nobody waits to be let in."
NOBODY_LET_IN = "Nobody is let in yet: write to the bot on a platform, and it gives you a code."
# Who has said so of what the configuration says.
CONFIGURATION = "the configuration"
_STANDINGS = {"owner": "owner", "allowed": "let in", "blocked": "shut out", "pending": "waits"}


def stranger(person: Person) -> str:
    """Somebody who waits to be let in. Codes are not kept readable: they come from the people themselves."""
    return " ".join(filter(None, (person.channel, person.sender, called(person.name))))


def person(one: Person, stamp: Callable[[int], str]) -> str:
    """Somebody of whom something is known, on one line. stamp: a moment in milliseconds as people read it."""
    since, by = f", since {stamp(one.since)}" if one.since else "", f", by {one.by}" if one.by else ""
    return f"{_STANDINGS[one.standing]}: {stranger(one)}{since}{by}"


def stands(found: Settled) -> str:
    """What an owner has changed about somebody."""
    ended = (f"{len(found.turns)} running stopped.",) if found.turns else ()
    words = {"owner": "is an owner now", "blocked": "is shut out now", "allowed": "may write to me now"}
    word = words.get(found.person.standing, "is a stranger again")
    return " ".join((f"{stranger(found.person)}: {word}.", *ended, *_dropped(found.dropped)))


def settled(found: Settled | None) -> str:
    """What became of a code."""
    if found is None:
        return "There is no such code. A code is good for an hour."
    who = stranger(found.person)
    if found.used:
        return f"The code of {who} was used before, or an hour has passed; then they get another one when they write."
    word = {"allowed": "may write to me now", "owner": "is an owner now"}.get(found.person.standing, "stays outside")
    return f"{who}: {word}."


def call(name: str, arguments: str) -> str:
    """What is shown of a call of a tool, as code, so that nothing in it is markup. arguments: empty to hide them."""
    line = one_line(f"{name}: {subject(arguments)}").removesuffix(":").replace("`", "'")
    return f"🔧 `{line}`"


def subject(arguments: str) -> str:
    """What a call is about, on one line and without secrets: its path, or else the first text among its arguments."""
    try:
        values = dict(json.loads(arguments))
    except (ValueError, TypeError, RecursionError):
        return ""
    first = next((value for value in (values.get("path"), *values.values()) if isinstance(value, str)), "")
    return one_line(mask_text(first.strip()[:1000]))


def background_cut(arguments: str) -> str:
    """What a session is told of a command in the background that a crash of the service has ended."""
    return f"Background command `{subject(arguments)}` was ended, because the service broke off and began anew."


def one_line(text: str) -> str:
    """The first line of a text, if that is not too long, without what cannot be seen."""
    first = "".join(filter(str.isprintable, " ".join(text.split("\n", 1)[0].split())))
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1] + "…"


def not_taken_off(reason: str) -> str:
    """What a conversation is told of a message that was to be taken back."""
    return f"A message of mine that was taken back is still here: I can neither delete nor change it ({reason})."


def stopped(running: bool, dropped: int, *, alone: bool = False) -> str:
    """The answer to /stop. alone: only what whoever asks has caused is stopped."""
    nothing = "Nothing of yours was running." if alone else "Nothing was running."
    return " ".join(("Stopped." if running else nothing, *_dropped(dropped)))


def fresh_start(answers: str, running: bool, dropped: int) -> str:
    """The answer to /new and /reset. answers: the name of the model that answers."""
    parts = ("New conversation.", "What was running is stopped.") if running else ("New conversation.",)
    return " ".join((*parts, *_dropped(dropped), f"`{answers}` answers."))


def _dropped(count: int) -> list[str]:
    return [f"{count} waiting message{'' if count == 1 else 's'} dropped."] if count else []


BEATS_ALREADY = "A beat is under way already."


# Why a beat has nothing to do in a session that others than owners write in.
CHECKLIST_NOT_HERE = (
    "Others than owners write in that conversation, so HEARTBEAT.md is not read there, unless `heartbeat.session` in "
    "the configuration names it."
)


def mistakes_in(file: str, mistakes: Sequence[Mistake]) -> str:
    """What is wrong in a file of the workspace; the rest of it counts all the same."""
    lines = "\n".join(f"- line {one.line}: {one.cause}" for one in mistakes)
    return f"In {file} I cannot follow this:\n{lines}\n\nThe rest of the file counts all the same."


def beats_rest(why: str, until: str) -> str:
    """What an owner is told once of a budget of beats that is spent."""
    return f"{why} Beats rest until {until}. `heartbeat.daily_budget` in the configuration sets it."


def kept_alert(stamp: str, text: str) -> str:
    """Something that could not be delivered when it was said."""
    return f"(From {stamp}, when I could not deliver it:)\n\n{text}"


def unsent(place: Place) -> str:
    """Say to an owner that what is said somewhere is not sent there."""
    return f"What I say is not sent to {place.channel} (chat {place.chat}): a rule of `send_policy` denies it."
