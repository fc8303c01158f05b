"""What a run is made of: model, tools, limits, prompt and cutting, decided anew for each turn."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from agent.message import ToolSpec
from agent.models.base import ModelClient
from agent.prompt.build import build as build_prompt
from agent.spec import CallRules, Limits, Progress, RunSpec, ToolSet
from agent.tools.base import RunContext, Tool, ToolFactory
from agent.tools.schema import specs as specs_of
from agent.workspace_files import load as load_files
from bot.clock import Clock
from bot.config.background import Heartbeat
from bot.people.access import is_trusted
from bot.people.accounts import Accounts
from bot.people.groups import group_of
from bot.people.people import People
from bot.persistence.values import Turn, TurnKind
from bot.replies.beat_words import BeatWords
from bot.runs.messaging import Messaging, Send
from bot.runs.permissions import Offer, Permissions
from bot.runs.rooms import Furniture, Room, Rooms
from bot.store.store import Store
from channels.session_key import begins_anew, parse
from channels.settings import AccountSection, ReplyTo, Streaming

# Milliseconds within which an alert is not said twice in a row.
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

    rooms: where it works, and with which tools. tools: makes those of others. scheduling: makes the `schedule` tool of
    a turn. permissions: which of all tools it has. rules: of all calls.
    """

    store: Store
    clock: Clock
    model: ModelClient
    beat_model: ModelClient
    rooms: Rooms
    tools: Sequence[ToolFactory]
    limits: Limits
    beat_limits: Limits
    heartbeat: Heartbeat
    name: str
    accounts: Accounts
    people: People
    messaging: Messaging
    scheduling: Callable[[Turn], Tool[Any]]
    permissions: Permissions
    rules: CallRules

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
            lambda: self.store.schedules.last_alert(turn.turn_id, turn.conv_id, self.clock.now() - _DAY),
        )

    @asynccontextmanager
    async def of(self, turn: Turn, send: Send) -> AsyncIterator[RunSpec]:
        """The whole of it, for as long as the run works. send: plans what its `message` tool sends.

        Raises StoreUnavailable, OSError or WorkspaceError when the workspace cannot be used, or what a factory of tools
        raises.
        """
        async with AsyncExitStack() as made:
            inside = await self.rooms.enter(turn.session_key)
            offer = await self.offer(turn, inside, made, send)
            is_beat = turn.kind is TurnKind.BEAT
            specs = specs_of(offer.tools)
            yield RunSpec(
                ref=turn.run,
                model=self.model_of(turn.session_key, beats=is_beat),
                system=await self._system(turn, inside, specs),
                limits=self.beat_limits if is_beat else self.limits,
                tools=ToolSet(
                    by_name={tool.name: tool for tool in offer.tools},
                    specs=specs,
                    refused=offer.refused,
                    as_guest=offer.as_guest,
                ),
                rules=self.rules,
                progress=Progress(step=turn.step, usage=turn.usage, ran=turn.ran / 1000, decisions=turn.decisions),
                images=inside.images,
                overflow=inside.overflow,
                now=self.clock.now,
                sleep=self.clock.sleep,
                background=turn.kind in BY_THEMSELVES,
                may_be_empty=is_beat,
            )

    async def offer(self, turn: Turn, inside: Furniture, made: AsyncExitStack, send: Send) -> Offer:
        """The tools of a turn, which are closed with made, and why not others. inside: of the room of its session."""
        trusted = all(map(is_trusted, turn.messages))
        run = RunContext(
            turn_id=turn.turn_id, session_key=turn.session_key, trusted=trusted, workspace=inside.workspace
        )
        found: list[Tool[Any]] = [*inside.tools]
        for make in self.tools:
            found += await made.enter_async_context(make(run))
        found += self.messaging.tools(turn, trusted, send)
        return self.permissions.offer(turn, inside.room, [*found, self.scheduling(turn)])

    def _added(self, turn: Turn) -> str:
        """What the configuration adds to the prompt in the group in which a turn answers."""
        account = self.accounts.like(turn.place)
        elsewhere = turn.kind is TurnKind.BEAT and parse(turn.session_key).kind in ("direct", "main")
        if elsewhere or account is None or not isinstance(account.section, AccountSection):
            return ""
        group = group_of(account.section, self.people, turn.messages[0])
        return (group.prompt if group else None) or ""

    async def _system(self, turn: Turn, inside: Furniture, tools: tuple[ToolSpec, ...]) -> str:
        """The transcript's own prompt; made anew when there is none, or configuration or room have changed since.

        It is that of the channel the transcript began on: a message over another one changes no prefix. A beat, which
        may answer anywhere, makes that of a transcript of its own only; with light context it holds no files.
        """
        added = self._added(turn)
        fingerprint = self._fingerprint(inside.room, added, tools)
        is_beat, own = turn.kind is TurnKind.BEAT, begins_anew(turn.session_key)
        light = is_beat and self.heartbeat.light_context
        if (own or not light) and turn.prompt is not None and turn.fingerprint == fingerprint:
            return turn.prompt
        in_room = not inside.room.owned
        own_files = inside.workspace if in_room else None
        files = () if light else await asyncio.to_thread(load_files, self.rooms.root, own_files)
        account = self.accounts.like(turn.place)
        rules = account.rules if account else _FOR_PROGRAMS
        channel = "\n".join(text for text in (rules, added) if text)
        system = build_prompt(name=self.name, tools=tools, channel=channel, files=files, in_room=in_room)
        if own or not is_beat:
            await self.store.turns.set_prompt(turn.transcript_id, system, fingerprint)
        return system

    def _fingerprint(self, room: Room, added: str, specs: Sequence[ToolSpec]) -> str:
        """Changes when the configuration or the room does, and not with what is in it: edits of files show in the next
        transcript."""
        tools = [(tool.name, tool.description, tool.schema_json) for tool in specs]
        rules = sorted((account.label, account.rules) for account in self.accounts)
        return hashlib.sha256(json.dumps([self.name, rules, added, tools, room.name]).encode()).hexdigest()[:16]
