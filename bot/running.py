"""Prepares the runs of claimed turns: context, system prompt, replies, typing. What a lane asks for."""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from agent.context import Context
from agent.events import KeptEvent
from agent.models.base import ToolSpec
from agent.prompt.build import build as build_prompt
from agent.workspace_files import load as load_files
from bot.accounts import Accounts
from bot.contexts import Contexts
from bot.replies import Replies
from bot.store.values import Turn
from bot.turns import RunResult, TurnRun, Workshop
from bot.typing import Typing
from channels.settings import Streaming

log = structlog.get_logger()

# A program wants the answer in one piece, and nothing is said before it is whole.
_WHOLE = Streaming.model_validate({"min_chars": 60_000, "max_chars": 100_000, "break": "message_end"})


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What system prompts are made of. rules: what the model is told about a conversation, by account or surface."""

    name: str
    workspace: Path
    rules: Mapping[str, str]


class Preparing:
    """Implements `bot.lanes.Running`."""

    def __init__(self, shop: Workshop, parts: PromptParts, accounts: Accounts) -> None:
        self._shop = shop
        self._parts = parts
        self._accounts = accounts
        self._contexts = Contexts(shop.store)
        self.model = shop.model.name

    async def prepare(self, turn: Turn) -> TurnRun:
        """Tell that the turn begins, and make everything it needs.

        Raises StoreUnavailable, or OSError when the workspace cannot be read.
        """
        if turn.start is not None:
            self._shop.bus.publish(turn.start)
        context = await self._contexts.take(turn)
        return self._run(turn, await self._prompt(turn), context)

    def released(self, events: Sequence[KeptEvent]) -> None:
        """A run was given back to the queue: tell how it was closed."""
        for event in events:
            self._shop.bus.publish(event)

    def bare(self, turn: Turn) -> TurnRun:
        """A run that can only be failed."""
        return self._run(turn, "", Context())

    def ended(self, turn: Turn, run: TurnRun, result: RunResult) -> None:
        """Keep the context for the next turn."""
        self._contexts.give_back(turn.transcript_id, run.context)
        log.info(
            "turn",
            turn=turn.turn_id,
            session=turn.session_key,
            outcome=result.outcome.value,
            seconds=round(result.duration, 3),
            blocks=len(result.blocks),
            tokens_in=result.usage.input,
            tokens_out=result.usage.output,
        )

    def _run(self, turn: Turn, system: str, context: Context) -> TurnRun:
        shop = self._shop
        channel = shop.outbox.channel(turn.place.channel)
        account = self._accounts.like(turn.place)
        cutting = account.section.cutting() if account else _WHOLE
        replies = Replies(turn.turn_id, channel, cutting, shop.clock.nonce)
        typing = Typing(
            shop.outbox.serving(turn.place), turn.place, lambda error: log.info("typing failed", reason=str(error))
        )
        return TurnRun(shop, turn, system, context, replies, typing)

    async def _prompt(self, turn: Turn) -> str:
        """The transcript's own prompt; made anew when there is none or the configuration has changed since.

        It is that of the channel the transcript began on: a message over another one changes no prefix.
        """
        tools = self._shop.tools_of(turn).specs
        fingerprint = _fingerprint(self._parts, tools)
        if turn.prompt is not None and turn.fingerprint == fingerprint:
            return turn.prompt
        files = await asyncio.to_thread(load_files, self._parts.workspace)
        account = self._accounts.like(turn.place)
        prompt = build_prompt(
            name=self._parts.name,
            tools=tools,
            channel=self._parts.rules.get(account.label if account else turn.place.channel, ""),
            files=files,
        )
        await self._shop.store.turns.set_prompt(turn.transcript_id, prompt, fingerprint)
        return prompt


def _fingerprint(parts: PromptParts, specs: Sequence[ToolSpec]) -> str:
    """Changes when the configuration does, and not with the workspace: edits there show in the next transcript."""
    tools = [(tool.name, tool.description, tool.schema_json) for tool in specs]
    return hashlib.sha256(json.dumps([parts.name, sorted(parts.rules.items()), tools]).encode()).hexdigest()[:16]
