"""What becomes of messages that come while others wait or are answered: the rule of each place, what people are told of
it, and the command /queue. What a rule does is in `bot/store/queueing.py`."""

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

from pydantic import Field

from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.config.model import Queue
from bot.people.conversations import Conversations
from bot.persistence.inbox import QueueRule
from bot.runs.settings_commands import ChangeSetting
from bot.store.store import Store
from channels.message import Place
from channels.outgoing import Button, Planned
from channels.settings import QueueDrop, QueueMode
from channels.sources import Source

Notice = Callable[[Source, str, str], tuple[Planned, ...]]
_MODES: dict[QueueMode, str] = {
    "collect": "I answer all of it together",
    "steer": "I read it before my next step",
    "followup": "I answer each message by itself",
    "interrupt": "I stop and answer the newest",
}
_TOLD: dict[str, str] = {
    "new": "{cap} messages wait here already. I do not take what you write now; please write it again later.",
    "old": "More than {cap} messages would wait here. For each further one I drop the oldest, without an answer.",
    "summarise": (
        "More than {cap} messages would wait here. I answer the oldest no longer by themselves; "
        "of each I keep the beginning, which I read before my next answer."
    ),
    "interrupt": "I have stopped answering here: something newer comes first. Write again if you still want it.",
}


def rule(queue: Queue, notice: Notice, *, is_owner: bool, joins: bool) -> QueueRule:
    """Return the rule for a message. queue: what holds where it was written. notice, joins: see `Routing`."""
    tells = partial(_tells, notice, queue.cap)
    only_own = not is_owner
    return QueueRule(mode=queue.mode, cap=queue.cap, drop=queue.drop, only_own=only_own, joins=joins, tells=tells)


def _tells(
    notice: Notice, cap: int, source: Source, place: Place, what: Literal[QueueDrop, "interrupt"]
) -> tuple[Planned, ...]:
    return notice(source, _TOLD[what].format(cap=cap), place.channel)


class QueueArguments(Arguments):
    """The arguments of /queue."""

    mode: Literal["collect", "steer", "followup", "interrupt", "default"] | None = Field(
        default=None, description="What becomes of what is written while I answer; without it I say what is set."
    )


def command(queue: Callable[[], Queue], conversations: Conversations, store: Store) -> Command:
    """Make the command. queue: returns what the configuration says for all places."""

    async def run(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, QueueArguments)
        account = conversations.section(call.message.origin.place)
        if account is None:
            return Say("Here each message is answered by itself, in order.", mistake=arguments.mode is not None)
        configured = queue().there(account).mode
        if arguments.mode is not None:
            mode = configured if arguments.mode == "default" else arguments.mode
            setting = "" if arguments.mode == "default" else arguments.mode
            return ChangeSetting(store, ("queue", setting), _said(mode, arguments.mode))
        set_here = (await store.settings.of(call.session_key)).queue
        mode = set_here or configured
        count = await store.inbox.count_waiting(call.session_key)
        others = [one for one in get_args(QueueMode) if one != mode]
        words = [*others, *(["default"] if set_here else [])]
        waits = f"{count or 'No'} message{'' if count == 1 else 's'} wait{'s' if count == 1 else ''}."
        offer = "Instead: " + ", ".join(f"`/queue {word}`" for word in words) + "."
        text = f"{_said(mode, set_here or 'default')} {waits} {offer}"
        return Say(text, tuple(Button(word, f"/queue {word}") for word in words))

    about = "What becomes of messages while I answer."
    return Command(name="queue", help=about, run=run, arguments=QueueArguments, guests="direct")


def _said(mode: QueueMode, chosen: str) -> str:
    by = "as configured" if chosen == "default" else "chosen here"
    return f"While I answer and you write: {_MODES[mode]} (`{mode}`, {by})."
