"""Receipts: the line under an answer that says what its turn has done, made from calls that succeeded.

The model has no part in it: a receipt is planned with the last block of the answer, under a source of its own, and
stands in no transcript, so that the model does not learn to write one itself. Programs over HTTP get none, because
they read the calls as events; beats get none, because they are quiet.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent.message import ToolCall
from bot.clock import Clock
from bot.config.values import MESSAGE, SCHEDULE
from bot.outbox import Outbox
from bot.persistence.turns import Turn
from bot.speech import spoken
from bot.wording import one_line
from channels.message import ChatKind
from channels.outgoing import Planned
from channels.sources import receipt, tool_message
from heartbeat.schedule import At, ScheduleError, describe, parse

# How many acts are named before "and N more".
MOST = 5
_FILES = {"write": "wrote", "edit": "changed"}
SENDS = {"send", "reply", "upload", "thread_reply", "thread_create"}
_CHANGED = {"pause": "paused", "resume": "resumed", "run": "started", "delete": "deleted"}
# What the store knows of a message, as it is said. What was not sent is no act.
_FATES = {"sent": "sent", "planned": "sending", "unknown": "perhaps sent"}


@dataclass(eq=False, slots=True)
class Receipts:
    """Makes the receipts of turns."""

    # Where receipts stand; auto: where only the person who is answered reads.
    mode: Literal["auto", "on", "off"]
    # Knows what has become of the messages that a turn sent.
    outbox: Outbox
    clock: Clock

    async def under(self, turn: Turn, step: int, acts: Sequence[ToolCall]) -> Sequence[Planned]:
        """Return the receipt under an answer of a turn; nothing where there is none to show.

        step: the number of the answer in its turn. acts: what the turn has done, oldest first.
        """
        if not self._shown(turn.place.kind):
            return ()
        said: dict[str, None] = {}  # in order, and what was done twice is said once
        for act in acts:
            if words := await self._words(turn.turn_id, act):
                said[words] = None
        if not said:
            return ()
        named = list(said)[:MOST]
        more = [f"and {len(said) - MOST} more"] if len(said) > MOST else []
        blocks = self.outbox.notice(
            receipt(turn.turn_id, step), spoken(" · ".join((*named, *more))), turn.place.channel, ours=False
        )
        return [replace(one, said="", silent=True) for one in blocks]

    def _shown(self, kind: ChatKind) -> bool:
        if self.mode == "auto":
            return kind in (ChatKind.DIRECT, ChatKind.CONSOLE)
        return self.mode == "on" and kind is not ChatKind.API

    async def _words(self, turn_id: str, act: ToolCall) -> str:
        """Return what an act is called; empty for one that changed nothing people need to be told of."""
        given = _arguments(act)
        path = _plain(given.get("path", ""))
        if act.name in _FILES:
            return f"{_FILES[act.name]} {path}"
        if act.name == MESSAGE and given.get("action") in SENDS and given.get("to"):
            fate = await self.outbox.outcome(tool_message(turn_id, act.call_id), 0)
            became = _FATES.get(fate.state)
            what = f"{became} {path}" if path else became
            return f"{what} to {_plain(given['to'])}" if became else ""
        if act.name == SCHEDULE:
            return self._planned(given)
        return ""

    def _planned(self, given: dict[str, str]) -> str:
        done = given.get("action", "add")
        if done in _CHANGED:
            return f"{_CHANGED[done]} {_plain(given.get('id') or given.get('name', ''))}"
        if done != "add":
            return ""
        when = {name: given[name] for name in ("at", "every", "cron", "zone") if given.get(name)}
        try:
            schedule = parse(**when, now=self.clock.now())
        except ScheduleError:
            return f"planned {_plain(given.get('name') or given.get('prompt', ''))}"
        return f"planned {self.clock.stamp(schedule.at) if isinstance(schedule, At) else describe(schedule)}"


def _arguments(act: ToolCall) -> dict[str, str]:
    """Return the arguments of a call that are texts."""
    try:
        found: Any = json.loads(act.arguments)
    except (ValueError, RecursionError):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}


def _plain(text: str) -> str:
    """Return the words of the model so that they are no markup."""
    shown = one_line(text.strip()).replace("`", "'")
    return f"`{shown}`" if any(sign in shown for sign in "*_~[]<>|\\@") else shown
