"""The commands /sessions and /export, for owners: transcripts of this place, what was said in any, and their files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import Field

from agent.tools.background import Background
from bot.approvals.requests import Requests
from bot.approvals.words import prose
from bot.commands.registry import Answer, Arguments, Call, Command, Effect, Say
from bot.outbox import Outbox
from bot.persistence.sessions import Hit, NoSuchTranscript, TranscriptView
from bot.persistence.turns import CommandKept, Ending, Stopped
from bot.runs.rooms import Rooms
from bot.sessions.formats import MIMES, Format
from bot.sessions.service import Sessions
from bot.speech import spoken
from channels.outgoing import Action, OutgoingFile, Planned
from channels.sources import sentence

# How many transcripts a list in a chat shows, and characters of their ids: the time that they begin with, and enough of
# the rest.
_LISTED = 15
SHORT = 14

NOTHING_FOUND = "Nothing was found."
_USAGE = "Say what to look for, as in /sessions search WORDS, or which transcript, as in /sessions resume TRANSCRIPT."
_ELSEWHERE = "That is a transcript of another conversation, and others read along here. Ask for it in a direct chat."


class SessionsArguments(Arguments):
    """The arguments of /sessions."""

    action: Literal["list", "search", "resume"] = Field(
        default="list", description="list; search words; resume a transcript."
    )
    what: str = Field(default="", description="The words, or the beginning of the transcript's id.")


class ExportArguments(Arguments):
    """The arguments of /export."""

    format: Format = Field(default="markdown", description="markdown, html or jsonl.")


@dataclass(eq=False)
class SessionCommands:
    """Makes the commands and carries them out."""

    sessions: Sessions
    outbox: Outbox
    # The commands that tools have started in the background.
    background: Background
    requests: Requests
    rooms: Rooms

    def build(self) -> tuple[Command, ...]:
        """Make the commands."""

        async def sessions(call: Call, arguments: Arguments) -> Effect:
            assert isinstance(arguments, SessionsArguments)
            if arguments.action == "list":
                found = await self.sessions.listed(call.session_key, _LISTED)
                return Say(spoken("\n".join(self._row(one) for one in found)) or NOTHING_FOUND)
            if not arguments.what:
                return Say(_USAGE, mistake=True)
            if arguments.action == "search":
                hits = await self.sessions.search(arguments.what, shown=lambda session: self._sees(call, session))
                return Say(spoken("\n".join(self._hit(one) for one in hits)) or NOTHING_FOUND)
            try:
                session, transcript = await self.sessions.store.sessions.named(arguments.what)
            except NoSuchTranscript as error:
                return Say(str(error), mistake=True)
            return Resume(self, session, transcript) if self._sees(call, session) else Say(_ELSEWHERE, mistake=True)

        async def export(call: Call, arguments: Arguments) -> Effect:
            assert isinstance(arguments, ExportArguments)
            channel = self.outbox.channel(call.message.origin.place.channel)
            try:
                path = await self.sessions.export_file(call.session_key, arguments.format)
            except NoSuchTranscript as error:
                return Say(str(error), mistake=True)
            size = path.stat().st_size
            if channel is None or Action.FILE not in channel.capabilities.actions:
                return Say(f"No file can be sent here. It is {path} on the machine of the service, for two days.")
            if size > channel.capabilities.file_bytes:
                return Say(f"The file has {size:,} bytes, which is too large to be sent here. It is {path}.")
            return SendFile(path, MIMES[arguments.format])

        lists = "The transcripts of this place; search all for words, or resume an older one."
        return (
            Command(name="sessions", help=lists, run=sessions, arguments=SessionsArguments),
            Command(name="export", help="This conversation as a file.", run=export, arguments=ExportArguments),
        )

    async def resume(self, answer: Answer, session: str, transcript: str) -> CommandKept:
        """Let the session go on with a transcript, or with a copy of one of another session; what runs is stopped."""
        call, store = answer.call, self.sessions.store
        if session != call.session_key:
            copy = sha256(f"{transcript} {call.seq}".encode()).hexdigest()[:32]  # the same if this is tried again
            await store.sessions.copy(transcript, call.session_key, copy)
            transcript = copy
        goes_on = self.background.stop(call.session_key, "")

        def reply(stopped: Stopped) -> Sequence[Planned]:
            ended = " What was running was stopped." if stopped.running or goes_on else ""
            dropped = f" {stopped.dropped} waiting messages were dropped." if stopped.dropped else ""
            return answer.blocks(f"We go on with the transcript {transcript[:SHORT]}.{ended}{dropped}")

        ending = Ending(renew=transcript)
        kept = await store.stops.stop(call.seq, call.session_key, reply, await answer.chosen(), ending)
        self.requests.hurry()  # requests of the stopped turns are closed
        return kept

    def _sees(self, call: Call, session: str) -> bool:
        place = call.message.origin.place
        return self.rooms.sees(call.session_key, place, session, by_owners=call.by_owner)

    def _row(self, one: TranscriptView) -> str:
        begun, count = self.sessions.clock.stamp(one.created_at), f"{one.messages} messages"
        mark = "now: " if one.current else ""
        return f"- {mark}`{one.transcript[:SHORT]}` {begun}, {count}: {prose(one.first)}"

    def _hit(self, one: Hit) -> str:
        at = self.sessions.clock.stamp(one.at)
        return f"- `{one.transcript[:SHORT]}` {prose(one.session)}, {one.role}, {at}: {prose(one.text)}"


@dataclass(frozen=True, slots=True)
class Resume(Effect):
    """Lets the session go on with an older transcript."""

    commands: SessionCommands
    session: str
    transcript: str

    async def persist(self, answer: Answer) -> CommandKept:
        """Persist the change, with the stop of what runs."""
        return await self.commands.resume(answer, self.session, self.transcript)


@dataclass(frozen=True, slots=True)
class SendFile(Effect):
    """Sends a file behind a line of text."""

    path: Path
    mime: str

    async def persist(self, answer: Answer) -> CommandKept:
        """Plan the text and the file."""
        blocks = answer.blocks(f"This conversation as `{self.path.name}`:")
        file = OutgoingFile(path=str(self.path.absolute()), name=self.path.name, mime=self.mime)
        bare = replace(blocks[0], source=sentence("cmd", answer.call.seq), body="", said="", respond="")
        sent = replace(bare, piece=len(blocks), action=Action.FILE, file=file)
        return await answer.say(answer.call.seq, (*blocks, sent), await answer.chosen())
