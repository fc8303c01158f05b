"""The commands /undo and /redo, and the button that answers an edited question.

What an exchange has sent is deleted. Where a platform refuses that, the message is edited once so that its words are
struck out; where it refuses that as well, the conversation is told.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field

from agent.message import ToolCall
from agent.tools.background import Background
from bot import wording
from bot.approvals.requests import Requests
from bot.approvals.words import prose
from bot.clock import Clock
from bot.commands.registry import Answer, Arguments, Call, Command, Effect
from bot.config.values import MESSAGE
from bot.outbox import Outbox
from bot.persistence.exchanges import Refusal, Shown, Undone
from bot.persistence.turns import CommandKept
from bot.runs.receipts import SENDS
from bot.store.store import Store
from channels.outgoing import Action, Planned
from channels.sources import sentence

# The most exchanges that one command takes back; the most questions and acts that its answer names.
MOST, NAMED = 50, 8
# Tools that leave nothing behind; what others have done is named.
_LOOK = frozenset({"read", "glob", "grep", "web_fetch", "web_search", "ask_person", "stay_silent"})
_SAYS = {"exec": ("ran", "command"), "write": ("wrote", "path"), "edit": ("changed", "path")}
_GONE = "~~(taken back)~~"
_REFUSED: dict[Refusal, str] = {
    "nothing": "There is nothing to {}.",
    "newer": "Something was said or begun since, so nothing was changed.",
    "summed up": "A summary stands for that part of the conversation, and nothing can be taken out of it."
    " So nothing was changed; /new begins without it.",
    "others": "That is somebody else's exchange, so nothing was changed.",
    "unedited": "Nothing of the newest question has been edited since, so nothing was changed.",
}


class UndoArguments(Arguments):
    """The arguments of /undo."""

    count: int = Field(default=1, ge=1, le=MOST, description="How many exchanges.")


class AnewArguments(Arguments):
    """The arguments of /reanswer."""

    message: str


@dataclass(frozen=True, slots=True)
class TakeBack(Effect):
    """Takes exchanges back, brings them back (count 0), or asks the newest anew as it was edited."""

    commands: "UndoCommands"
    count: int = 1
    # The platform's id of the edited message; empty: nothing is asked anew.
    edited: str = ""

    async def persist(self, answer: Answer) -> CommandKept:
        """Persist it with its answer; the run is cancelled afterwards."""
        return await self.commands.carry_out(answer, self.count, self.edited)


@dataclass(eq=False)
class UndoCommands:
    """Makes the commands, and carries them out."""

    store: Store
    clock: Clock
    # The commands that tools have started in the background.
    background: Background
    requests: Requests
    outbox: Outbox

    def build(self) -> tuple[Command, ...]:
        """Make the commands."""

        async def undo(call: Call, arguments: Arguments) -> Effect:
            assert isinstance(arguments, UndoArguments)
            return TakeBack(self, arguments.count)

        async def redo(call: Call, _: Arguments) -> Effect:
            return TakeBack(self, 0)

        async def anew(call: Call, arguments: Arguments) -> Effect:
            assert isinstance(arguments, AnewArguments)
            return TakeBack(self, edited=arguments.message)

        takes = "Takes the last exchange back: I forget it and delete what I said."
        gives, again = "Brings back what /undo took back last.", "Answers a question that was edited anew."
        return (
            Command(name="undo", help=takes, run=undo, arguments=UndoArguments, guests="direct"),
            Command(name="redo", help=gives, run=redo, guests="direct"),
            Command(name="reanswer", help=again, run=anew, arguments=AnewArguments, guests="everywhere", listed=False),
        )

    async def carry_out(self, answer: Answer, count: int, edited: str) -> CommandKept:
        """Persist what a command takes back or brings back. Raises StoreUnavailable."""
        call, exchanges = answer.call, self.store.exchanges
        tell = self._tells(answer, "undo" if count else "redo")
        if not count:
            return await exchanges.redo(call.seq, call.session_key, tell, by_owner=call.by_owner)
        if edited:
            origin = call.message.origin
            asker = None if call.by_owner else (origin.place.channel, origin.sender)
            chosen = await answer.chosen()
            kept = await exchanges.ask_anew(call.seq, call.session_key, edited, asker, chosen, self._take_off, tell)
        else:
            kept = await exchanges.undo(call.seq, call.session_key, count, self._take_off, tell, by_owner=call.by_owner)
        if kept.stopped.turns:
            self.background.stop(call.session_key)
            self.requests.hurry()  # requests of the stopped turns are closed
        return kept

    def _tells(self, answer: Answer, doing: str) -> Callable[[Undone], Sequence[Planned]]:
        def tell(undone: Undone) -> Sequence[Planned]:
            if undone.refused:
                return answer.blocks(_REFUSED[undone.refused].format(doing), private=True)
            return answer.blocks("\n".join(_undone(undone) if doing == "undo" else _redone(undone)))

        return tell

    def _take_off(self, shown: Shown) -> Sequence[Planned]:
        """Make the deletion of a message and the edit for where it is refused; that alone if it is too old."""
        source, channel = sentence("undo", shown.delivery_id), self.outbox.channel(shown.place.channel)
        struck = "\n".join(f"~~{prose(line)}~~" for line in shown.words.splitlines() if line.strip())
        words = (
            self.outbox.notice(source.also("struck"), text, shown.place.channel, ours=False)[:1]
            for text in (struck, _GONE)
        )
        (edit,) = next(filter(None, words))
        edit = replace(edit, action=Action.EDIT, edits=shown.delivery_id, said="", unless=source.key)
        within = channel.capabilities.deletes_within if channel else 0
        if within and self.clock.now() - shown.at > within * 1000:
            return (edit,)
        return Planned(source=source, body="", nonce=0, action=Action.DELETE, edits=shown.delivery_id), edit


def _undone(undone: Undone) -> Iterator[str]:
    """Yield the lines that say what was taken back, and what stays."""
    yield f"I have taken back {_questions(undone.asked)}."
    if undone.stopped.running or undone.stopped.dropped:
        yield wording.stopped(undone.stopped.running, undone.stopped.dropped)
    if undone.deleted:
        yield f"{_number(undone.deleted, 'message')} of mine will be gone."
    stays = [*dict.fromkeys(filter(None, map(_act, undone.calls)))]
    more = [f"{len(stays) - NAMED} more acts"] if len(stays) > NAMED else []
    stays = [*stays[:NAMED], *more]
    if undone.granted:
        stays.append(f"allowed for always: {_number(undone.granted, 'request')}, see /approvals")
    if undone.struck:
        stays.append(f"{_number(undone.struck, 'message')} too old to be deleted, so I strike the words out")
    if undone.lost:
        stays.append(
            f"{_number(undone.lost, 'message')} that may still be there: I cannot tell whether or where it arrived"
        )
    if stays:
        yield "This stays as it is:"
        yield from (f"- {one}" for one in stays)


def _redone(undone: Undone) -> Iterator[str]:
    yield f"This counts again: {_questions(undone.asked)}. My messages about it stay deleted."


def _questions(asked: Sequence[str]) -> str:
    """Name exchanges by the beginnings of what people asked."""
    named = [f"“{prose(wording.one_line(text))}”" for text in asked if text.strip()]
    more = [f"{len(named) - NAMED} more"] if len(named) > NAMED else []
    return ", ".join((*named[:NAMED], *more)) or "the last exchange"


def _act(call: ToolCall) -> str:
    """Name what a call has done; empty for one that leaves nothing behind, or whose message goes."""
    try:
        given: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        given = {}
    given = given if isinstance(given, dict) else {}
    if call.name in _LOOK or (call.name == MESSAGE and given.get("action") in SENDS):
        return ""
    says, about = _SAYS.get(call.name, (call.name, "action"))
    return prose(wording.one_line(f"{says} {given.get(about, '')}".strip()))


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
