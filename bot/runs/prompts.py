"""The system prompt of a transcript: made for its first turn, and made anew when the configuration or room changes.

It is made anew, too, once the first meeting has taken place whose script it has (`BOOTSTRAP.md`). That is a fact of the
store, written with the end of the turn, so that no crash loses or repeats the meeting.
"""

import asyncio
import hashlib
import json
from dataclasses import dataclass, replace
from functools import lru_cache

from agent.hooks import NO_HOOKS, Hooks
from agent.message import ToolSpec, merged
from agent.prompt.build import Prompt
from agent.prompt.build import build as build_prompt
from agent.tools.files import ReadTool
from agent.workspace_files import load as load_files
from agent.workspace_files import load_script
from bot.people.accounts import Accounts
from bot.people.conversations import group_of
from bot.people.people import People
from bot.persistence.turns import Turn, TurnKind
from bot.runs.hooking import added_of, files_of
from bot.runs.rooms import Furniture, Room, Rooms
from bot.store.store import Store
from channels.message import ChatKind
from channels.session_key import begins_anew, parse
from channels.settings import AccountSection

# What the model is told about conversations over HTTP, which have no account.
_FOR_PROGRAMS = "Your answer is handed to a program as Markdown."
# Where a conversation is, in words, besides the platforms.
_WHERE = {"console": "in a terminal", "http": "with a program"}


@dataclass(eq=False, slots=True, kw_only=True)
class Prompts:
    """Finds the prompt of a turn in its transcript, or makes and persists it."""

    store: Store
    # The name of the bot.
    name: str
    # The folders of the workspace.
    rooms: Rooms
    accounts: Accounts
    people: People
    # Whether the prompt of beats leaves the files of the workspace out.
    light_beats: bool
    hooks: Hooks = NO_HOOKS

    async def of(self, turn: Turn, inside: Furniture, specs: tuple[ToolSpec, ...]) -> Prompt:
        """Return the prompt of a turn.

        inside: the furniture of the room of its session. specs: the tools that the turn is offered. The prompt is made
        for the channel of the first turn; later turns over other channels keep it, so that the prefix stays stable. The
        prompt of a beat, which may answer anywhere, is persisted only if the transcript is the beat's own. Raises
        StoreUnavailable, OSError or WorkspaceError.
        """
        kept, added, room = turn.prompt, self._added(turn), inside.room
        skills = await self.rooms.skills.sign() if self.rooms.skills.has_some else ()
        fingerprint = _fingerprint(self.name, self.accounts.rules, added, specs, room.name, skills)
        is_beat, own = turn.kind is TurnKind.BEAT, begins_anew(turn.session_key)
        fits = (own or not (is_beat and self.light_beats)) and turn.fingerprint == fingerprint
        if fits and kept is not None and not (kept.first_meeting and await self.store.reads.has_met()):
            return kept
        prompt = await self.made(turn, inside, specs)
        if own or not is_beat:
            await self.store.turns.set_prompt(turn.transcript_id, prompt, fingerprint)
        return prompt

    async def made(self, turn: Turn, inside: Furniture, specs: tuple[ToolSpec, ...]) -> Prompt:
        """Make the prompt of a turn from the files as they are, without persisting it. Takes and raises as `of`."""
        room = inside.room
        light = turn.kind is TurnKind.BEAT and self.light_beats
        own_files = None if room.owned else inside.workspace
        files = () if light else await asyncio.to_thread(load_files, self.rooms.root, own_files)
        meets = room.owned and turn.kind in (TurnKind.REPLY, TurnKind.API) and not await self.store.reads.has_met()
        if self.hooks.points:
            files = await files_of(self.hooks, turn, files)
        script = await asyncio.to_thread(load_script, self.rooms.root) if meets else None
        shown = [file.state for file in (*files, *((script,) if script else ())) if file.state]
        origins = await self.rooms.lineage.of(shown) if shown else ()
        account = self.accounts.like(turn.place)
        channel = turn.place.channel
        added = "\n\n".join(filter(None, (account.section.added_prompt() if account else "", self._added(turn))))
        prompt = build_prompt(
            name=self.name,
            place=_WHERE.get(channel, f"on {channel.capitalize()}"),
            tools=specs,
            files=files,
            skills=[] if light else self._skills(turn, room, specs),
            in_room=not room.owned,
            rules=account.channel.capabilities.rules if account else _FOR_PROGRAMS,
            added=await added_of(self.hooks, turn, added) if self.hooks.points else added,
            script=script,
        )
        clean = inside.overflow.clean
        sections = tuple(replace(one, text=clean(one.text)) for one in prompt.sections)
        # a file that only the operator has written is not known, and trusted
        return replace(prompt, sections=sections, origins=merged(one for known in origins for one in known or ()))

    def _skills(self, turn: Turn, room: Room, specs: tuple[ToolSpec, ...]) -> list[tuple[str, str]]:
        """Return the skills of a conversation, if it has the tool that reads them."""
        if not any(one.name == ReadTool.name for one in specs):
            return []
        there = self.rooms.skills.there(turn.place.channel, owned=room.owned)
        return [(one.name, one.line) for one in there]

    def _added(self, turn: Turn) -> str:
        """Return what the configuration adds to the prompt for the group in which a turn answers; may be empty."""
        if turn.messages[0].origin.place.kind is ChatKind.DIRECT:
            return ""
        account = self.accounts.like(turn.place)
        elsewhere = turn.kind is TurnKind.BEAT and parse(turn.session_key).kind in ("direct", "main")
        if elsewhere or account is None or not isinstance(account.section, AccountSection):
            return ""
        group = group_of(account.section, self.people, turn.messages[0])
        return (group.prompt if group else None) or ""


@lru_cache(maxsize=1024)
def _fingerprint(
    name: str,
    rules: tuple[tuple[str, str], ...],
    added: str,
    specs: tuple[ToolSpec, ...],
    room: str,
    skills: tuple[str, ...],
) -> str:
    """Return a hash that changes with the configuration and the room, but not with the files in the room.

    So edits of files show only in the next transcript. rules: what the model is told on each account, by its label.
    """
    tools = [(tool.name, tool.description, tool.schema_json) for tool in specs]
    return hashlib.sha256(json.dumps([name, rules, added, tools, room, *skills]).encode()).hexdigest()[:16]
