"""What hooks are asked and told about turns: before one is claimed, when it begins, and when it has ended."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from agent.context import Context
from agent.events import AgentEnd as RunEnd
from agent.events import Outcome
from agent.hooks import Hooks
from agent.workspace_files import WorkspaceFile
from bot.hooks.points import (
    AgentBootstrap,
    AgentEnd,
    BeforeAgentReply,
    BeforeModelResolve,
    BeforePromptBuild,
    MessageReceived,
    SessionEnd,
    SessionStart,
)
from bot.persistence.causes import Cause
from bot.persistence.turns import Turn
from bot.store.store import Store

log = structlog.get_logger()


def of_turn(turn: Turn) -> Mapping[str, Any]:
    """Return what hooks are told of a turn at each of its points."""
    return {
        "session_key": turn.session_key,
        "turn_id": turn.turn_id,
        "session_id": turn.transcript_id,
        "kind": turn.kind.value,
        "channel": turn.place.channel,
    }


class TurnHooks:
    """Asks the hooks of turns, for all sessions."""

    def __init__(self, hooks: Hooks, store: Store) -> None:
        self._hooks, self._store = hooks, store
        # The texts of waiting messages that no hook has dropped, by session and place in the inbox.
        self._passed: dict[str, dict[int, str]] = {}

    async def newest(self, session_key: str) -> int:
        """Drop waiting messages of a session that a hook blocks; return the last of those that were asked about.

        Raises StoreUnavailable.
        """
        before, found = self._passed.pop(session_key, {}), await self._store.inbox.unanswered(session_key)
        passed = dict[int, str]()
        for seq, message in found:
            if before.get(seq) != message.text:
                origin, place = message.origin, message.origin.place
                event = MessageReceived(
                    session_key=session_key,
                    channel=place.channel,
                    account=place.account,
                    chat=place.chat,
                    thread=place.thread,
                    message_id=origin.message_id,
                    sender=origin.sender,
                    sender_name=origin.sender_name,
                    text=message.text,
                    files=tuple(one.kind for one in message.attachments),
                )
                if (await self._hooks.ask(event))[1] is not None:
                    await self._store.inbox.drop(seq, Cause.HOOK)
                    continue
            passed[seq] = message.text
        if passed:
            self._passed[session_key] = passed
        return found[-1][0] if found else 0

    async def reply(self, turn: Turn) -> str | None:
        """Tell hooks that a turn begins; return what one answers in place of the model, None where none does."""
        if turn.step:
            return None
        if turn.prompt is None and {SessionStart.point, SessionEnd.point} & self._hooks.points:
            if ended := await self._store.reads.transcript_before(turn.session_key, turn.transcript_id):
                self._hooks.tell(SessionEnd(**of_turn(turn), ended=ended))
            self._hooks.tell(SessionStart(**of_turn(turn)))
        if BeforeAgentReply.point not in self._hooks.points:
            return None
        text = "\n\n".join(one.text for one in turn.messages)
        event, blocked = await self._hooks.ask(BeforeAgentReply(**of_turn(turn), text=text))
        return "" if blocked is not None else event.reply or None

    def ended(self, turn: Turn, outcome: Outcome, end: RunEnd | None = None, context: Context | None = None) -> None:
        """Tell hooks that a run has ended. end: its event; None: it was ended from outside, or by an error in here."""
        if AgentEnd.point not in self._hooks.points:
            return
        own = (one.message for one in reversed(context.entries if context else ()) if one.turn_id == turn.turn_id)
        event = AgentEnd(
            **of_turn(turn),
            outcome=outcome.value,
            text=next((message.text for message in own if message.role == "assistant"), ""),
            error=(end and end.error_message) or "",
            seconds=end.duration if end else 0.0,
            tokens_in=end.usage.input if end else 0,
            tokens_out=end.usage.output if end else 0,
        )
        self._hooks.tell(event)


async def model_of(hooks: Hooks, turn: Turn, model: str) -> str:
    """Return the model that hooks choose for a turn. model: the one that it has otherwise."""
    return (await hooks.ask(BeforeModelResolve(**of_turn(turn), model=model)))[0].model


async def files_of(hooks: Hooks, turn: Turn, files: tuple[WorkspaceFile, ...]) -> tuple[WorkspaceFile, ...]:
    """Return the files of a prompt as hooks have changed them."""
    event, _ = await hooks.ask(AgentBootstrap(**of_turn(turn), files={one.name: one.text for one in files}))
    known = {one.name: one for one in files}
    made = ((name, str(text)) for name, text in event.files.items())
    return tuple(replace(known.get(name) or WorkspaceFile(name, text), text=text) for name, text in made)


async def added_of(hooks: Hooks, turn: Turn, added: str) -> str:
    """Return what a prompt says for its conversation as hooks have changed it."""
    return (await hooks.ask(BeforePromptBuild(**of_turn(turn), added=added)))[0].added
