"""Decides what people are shown of a beat: its words are held until its turn ends and then judged as one text."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from agent.journal import Step
from agent.message import Entry
from bot.replies.directives import Directives
from bot.replies.repeats import is_repeat
from channels.settings import Beats
from heartbeat.quiet import HEARTBEAT_OK, alert


@dataclass(eq=False)
class BeatWords:
    """The words of one beat, judged by the rules of `heartbeat/quiet`."""

    # How many characters beside HEARTBEAT_OK still count as a quiet answer.
    most: int
    # What is shown of beats on the account where this one answers.
    shows: Beats
    # Reads the last alert about the same tasks, which is not repeated.
    earlier: Callable[[], Awaitable[str]]
    _held: str = field(default="", init=False)

    def resume(self, turn_id: str, entries: Iterable[Entry]) -> None:
        """Collect the words that the turn said before it was parked or cut, from the lines of its transcript."""
        for entry in entries:
            if entry.turn_id == turn_id and entry.message.role == "assistant":
                self._hold(entry.message.text, goes_on=entry.kind == "assistant_cut")

    async def shown(self, step: Step, *, silent: bool) -> str:
        """Return what people are shown once an answer is complete; empty while the turn goes on.

        HEARTBEAT_OK is returned for a quiet beat where the configuration shows it. silent: the model has chosen to say
        nothing.
        """
        goes_on = step.note is not None or bool(step.message.tool_calls)
        self._hold(step.message.text, goes_on=step.note is not None)
        if goes_on and not silent:
            return ""
        words, self._held = self._held.strip(), ""
        sends = Directives()
        sends.feed(words)
        sends.end()
        if not sends.files:
            words = alert(words, self.most)
        if silent or not words:
            return HEARTBEAT_OK if self.shows.show_ok else ""
        again = not sends.files and is_repeat(words, await self.earlier())
        return "" if again or not self.shows.show_alerts else words

    def _hold(self, words: str, *, goes_on: bool) -> None:
        self._held += words if goes_on else f"{words}\n\n"
