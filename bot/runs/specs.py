"""What a run is made of: model, tools, limits, prompt and cutting, decided anew for each turn."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.images import Images
from agent.models.base import ModelClient, ToolSpec
from agent.prompt.build import build as build_prompt
from agent.spec import Limits, RunSpec
from agent.tools.base import RunContext, Tool, ToolFactory
from agent.tools.registry import allowed
from agent.tools.schema import spec
from agent.tools.stay_silent import STAY_SILENT
from agent.workspace_files import load as load_files
from bot.accounts import Accounts
from bot.clock import Clock
from bot.config.background import Heartbeat
from bot.inbound.access import is_trusted
from bot.inbound.people import People
from bot.inbound.routing import group_of
from bot.persistence.protocols import Store
from bot.persistence.values import Turn, TurnKind
from bot.runs.beat_words import BeatWords
from bot.runs.messaging import Messaging, Send
from channels.message import ChatKind
from channels.session_key import begins_anew, parse
from channels.settings import AccountSection, Group, GroupTools, ReplyTo, Streaming

# Milliseconds within which the same alert is not said again.
_DAY = 24 * 3_600_000
# A program wants the answer in one piece, and nothing is said before it is whole.
_WHOLE = Streaming.model_validate({"min_chars": 60_000, "max_chars": 100_000, "break": "message_end"})
# Turns that nobody asks for at the moment.
BY_THEMSELVES = (TurnKind.BEAT, TurnKind.JOB)
# What the model is told where no account is: over HTTP.
_FOR_PROGRAMS = "Your answer is handed to a program as Markdown."


@dataclass(frozen=True, slots=True, kw_only=True)
class Specs:
    """Answers for each turn, by its kind, channel, chat and session, what its run is made of. name: of the bot.

    messaging: None where the `message` tool is not allowed. scheduling: makes the `schedule` tool of a turn, if any.
    """

    store: Store
    clock: Clock
    model: ModelClient
    beat_model: ModelClient
    tools: Sequence[ToolFactory]
    images: Images
    limits: Limits
    beat_limits: Limits
    heartbeat: Heartbeat
    name: str
    workspace: Path
    accounts: Accounts
    people: People
    messaging: Messaging | None
    scheduling: Callable[[Turn], Sequence[Tool[Any]]]

    def model_of(self, session_key: str, *, beats: bool = False) -> ModelClient:
        """Which model answers in a session, or beats there."""
        return self.beat_model if beats else self.model

    def shown(self, turn: Turn) -> tuple[Streaming, ReplyTo]:
        """How the answers of a turn are cut, and which of their messages are shown as replies."""
        account = self.accounts.like(turn.place)
        cutting, replying = (account.section.cutting(), account.section.replying()) if account else (_WHOLE, "off")
        return cutting.model_copy(update={"mode": "off"}) if turn.kind is TurnKind.BEAT else cutting, replying

    def beat_words(self, turn: Turn) -> BeatWords | None:
        """What judges the words of a beat; None for other turns."""
        if turn.kind is not TurnKind.BEAT:
            return None
        account = self.accounts.like(turn.place)
        shows = self.heartbeat.shown_by(account.section if account else None)
        return BeatWords(
            self.heartbeat.ack_max_chars,
            shows,
            lambda: self.store.schedules.alerts(turn.conv_id, self.clock.now() - _DAY),
        )

    @asynccontextmanager
    async def of(self, turn: Turn, send: Send) -> AsyncIterator[RunSpec]:
        """The whole of it, for as long as the run works. send: plans what its `message` tool sends.

        Raises StoreUnavailable, OSError when the workspace cannot be read, or what a factory of tools raises.
        """
        async with AsyncExitStack() as made:
            group = self._group(turn)
            tools = await self._tools(turn, group, made, send)
            is_beat = turn.kind is TurnKind.BEAT
            specs = tuple(spec(tool) for tool in tools)
            yield RunSpec(
                ref=turn.run,
                model=self.model_of(turn.session_key, beats=is_beat),
                system=await self._system(turn, group.prompt or "", specs),
                tools={tool.name: tool for tool in tools},
                tool_specs=specs,
                limits=self.beat_limits if is_beat else self.limits,
                step=turn.step,
                usage=turn.usage,
                ran=turn.ran / 1000,
                now=self.clock.now,
                sleep=self.clock.sleep,
                decisions=turn.decisions,
                shown=self.images.shown,
                background=turn.kind in BY_THEMSELVES,
                may_be_empty=is_beat,
            )

    def _group(self, turn: Turn) -> Group:
        """What the configuration says of the group in which the turn answers; nothing elsewhere.

        In one that is not let in any more what was accepted before is answered without tools.
        """
        account = self.accounts.like(turn.place)
        if turn.kind is TurnKind.BEAT:  # it only answers there; its tools are those of its session
            if parse(turn.session_key).kind in ("direct", "main"):
                return Group()
            if turn.place.kind is ChatKind.DIRECT or account is None:  # a group's, whose rules are not to be had here
                return Group(tools=GroupTools(allow=()))
        if account is None or not isinstance(account.section, AccountSection) or turn.place.kind is ChatKind.DIRECT:
            return Group()
        return group_of(account.section, self.people, turn.messages[0]) or Group(tools=GroupTools(allow=()))

    async def _tools(self, turn: Turn, group: Group, made: AsyncExitStack, send: Send) -> Sequence[Tool[Any]]:
        run = RunContext(
            turn_id=turn.turn_id, session_key=turn.session_key, trusted=all(map(is_trusted, turn.messages))
        )
        found = [tool for make in self.tools for tool in await made.enter_async_context(make(run))]
        if self.messaging is not None:
            found += self.messaging.tools(turn, run.trusted, send)
        found += self.scheduling(turn)
        trusted = [tool for tool in found if run.trusted or not tool.trusted_only]
        asked_by_program = parse(turn.session_key).channel == "http"  # which waits for an answer
        deny = (*group.tools.deny, *((STAY_SILENT,) if asked_by_program else ()))
        return allowed(trusted, group.tools.allow, deny)

    async def _system(self, turn: Turn, added: str, tools: tuple[ToolSpec, ...]) -> str:
        """The transcript's own prompt; made anew when there is none or the configuration has changed since.

        It is that of the channel the transcript began on: a message over another one changes no prefix. A beat, which
        may answer anywhere, makes that of a transcript of its own only; with light context it holds no files.
        """
        fingerprint = self._fingerprint(added, tools)
        is_beat, own = turn.kind is TurnKind.BEAT, begins_anew(turn.session_key)
        light = is_beat and self.heartbeat.light_context
        if (own or not light) and turn.prompt is not None and turn.fingerprint == fingerprint:
            return turn.prompt
        files = () if light else await asyncio.to_thread(load_files, self.workspace)
        account = self.accounts.like(turn.place)
        rules = account.rules if account else _FOR_PROGRAMS
        channel = "\n".join(text for text in (rules, added) if text)
        system = build_prompt(name=self.name, tools=tools, channel=channel, files=files)
        if own or not is_beat:
            await self.store.turns.set_prompt(turn.transcript_id, system, fingerprint)
        return system

    def _fingerprint(self, added: str, specs: Sequence[ToolSpec]) -> str:
        """Changes when the configuration does, and not with the workspace: edits there show in the next transcript."""
        tools = [(tool.name, tool.description, tool.schema_json) for tool in specs]
        rules = sorted((account.label, account.rules) for account in self.accounts)
        return hashlib.sha256(json.dumps([self.name, rules, added, tools]).encode()).hexdigest()[:16]
