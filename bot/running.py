"""Prepares the runs of claimed turns: context, system prompt, replies, typing. What a lane asks for."""

import asyncio
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from agent.context import Context
from agent.prompt.build import build as build_prompt
from agent.workspace_files import load as load_files
from bot.contexts import Contexts
from bot.replies import Cutting, Replies
from bot.store.values import Claimed
from bot.turns import RunResult, TurnRun, Workshop
from bot.typing import Typing

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a system prompt is made of besides the workspace. extra: additions of the configuration, by channel."""

    name: str
    workspace: Path
    extra: dict[str, str]


class Preparing:
    """Implements `bot.lanes.Running`."""

    def __init__(self, shop: Workshop, parts: PromptParts, cutting: dict[str, Cutting]) -> None:
        self._shop = shop
        self._parts = parts
        self._cutting = cutting
        self._contexts = Contexts(shop.store)
        self.model = shop.model.name
        self.results = 0
        """Runs that have ended since the start."""

    async def prepare(self, claimed: Claimed) -> TurnRun:
        """Everything a turn needs. Raises StoreUnavailable, or OSError when the workspace cannot be read."""
        context = await self._contexts.take(claimed)
        return self._run(claimed, await self._prompt(claimed), context)

    def bare(self, claimed: Claimed) -> TurnRun:
        """A run that can only be failed."""
        return self._run(claimed, "", Context())

    def ended(self, claimed: Claimed, run: TurnRun, result: RunResult) -> None:
        """Keep the context for the next turn."""
        self.results += 1
        self._contexts.give_back(claimed.transcript_id, run.context)
        log.info(
            "turn",
            turn=claimed.run.turn_id,
            session=claimed.session_key,
            outcome=result.outcome.value,
            seconds=round(result.duration, 3),
            blocks=len(result.blocks),
            tokens_in=result.usage.input,
            tokens_out=result.usage.output,
        )

    def _run(self, claimed: Claimed, system: str, context: Context) -> TurnRun:
        shop = self._shop
        channel = shop.outbox.channel(claimed.place.channel)
        cutting = self._cutting.get(claimed.place.channel, Cutting())
        replies = Replies(claimed.run.turn_id, channel, cutting, shop.clock.nonce)
        typing = Typing(channel, claimed.place, lambda error: log.info("typing failed", reason=str(error)))
        return TurnRun(shop, claimed, system, context, replies, typing)

    async def _prompt(self, claimed: Claimed) -> str:
        """The transcript's own prompt; made anew when there is none or the configuration has changed since."""
        fingerprint = self._fingerprint(claimed)
        if claimed.prompt is not None and claimed.fingerprint == fingerprint:
            return claimed.prompt
        files = await asyncio.to_thread(load_files, self._parts.workspace)
        prompt = build_prompt(
            name=self._parts.name, tools=self._shop.tool_specs, channel=self._rules(claimed), files=files
        )
        await self._shop.store.turns.set_prompt(claimed.transcript_id, prompt, fingerprint)
        return prompt

    def _rules(self, claimed: Claimed) -> str:
        name = claimed.place.channel
        channel = self._shop.outbox.channel(name)
        rules = channel.capabilities.rules if channel else "Your answer is handed to a program as Markdown."
        return "\n".join(part for part in (rules, self._parts.extra.get(name, "")) if part)

    def _fingerprint(self, claimed: Claimed) -> str:
        """Changes when the configuration does, and not with the workspace: edits there show in the next transcript."""
        specs = [(tool.name, tool.description, tool.schema_json) for tool in self._shop.tool_specs]
        parts: list[Any] = [self._parts.name, self._rules(claimed), specs]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
