"""The files of one run's answers: those that an answer names, code that is too long for messages, and its voice."""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256

import structlog

from agent.tools.output import FOLDER
from agent.tools.workspace import WorkspaceError
from bot import wording
from bot.replies.cutting import Replies
from bot.runs.media import outgoing_file
from bot.runs.rooms import Rooms
from bot.voice.speech import Speech, speakable
from channels.base import Channel
from channels.outgoing import Action, OutgoingFile, Planned

log = structlog.get_logger()


class AnswerFiles:
    """Finds and keeps the files.

    channel: where the run answers; None takes no files. speech: says its answers aloud; None: they are not.
    """

    def __init__(self, rooms: Rooms, session_key: str, channel: Channel | None, speech: Speech | None = None) -> None:
        self._rooms, self._session_key, self._channel, self._speech = rooms, session_key, channel, speech
        # Code that is not on the disk yet, by the name that it has there.
        self._unsaved: dict[str, str] = {}

    async def named(
        self, replies: Replies, notice: Callable[[str, str], Sequence[Planned]], *, last: bool
    ) -> Sequence[Planned]:
        """Return the deliveries of the files that an answer names by their paths in the room of the session.

        notice: makes the sentence that is said instead of a file that cannot be sent, from its name and its text.
        last: whether it is the last answer of its turn, which is said aloud.
        """
        channel, planned = self._channel, list[Planned]()
        largest = channel.capabilities.file_bytes if channel and Action.FILE in channel.capabilities.actions else 0
        for number, path in enumerate(replies.files):
            try:
                workspace = self._rooms.inside(self._session_key).workspace
                file = await asyncio.to_thread(outgoing_file, workspace, path, largest)
            except WorkspaceError as error:
                planned += notice(f"file{replies.step}.{number}", wording.file_not_sent(str(error)))
            else:
                planned.append(replies.file(number, file))
        if last and self._speech is not None and channel is not None and largest:
            says = speakable(self._rooms.overflow_of(self._session_key).clean(replies.aloud))
            if says:
                spoken = self._speech.file(says, as_voice=channel.capabilities.voice_messages)
                planned.append(replies.voice(spoken))
        return planned

    def of_code(self, name: str, text: str) -> OutgoingFile:
        """Return the file of code, which `save` writes.

        It lies among the results of tools, which only the service changes, and is named after its content: what the
        same answer makes anew after a crash is the same file, and other code never replaces one that is being sent.
        """
        room = self._rooms.inside(self._session_key)
        text = room.overflow.clean(text)
        kept = f"code-{sha256(text.encode(errors='replace')).hexdigest()[:32]}"
        self._unsaved[kept] = text
        return OutgoingFile(path=str(room.workspace.root / FOLDER / kept), name=name, mime="text/plain")

    async def save(self) -> None:
        """Write the code that is not on the disk yet; a file that is missing is refused when it is to be sent."""
        while self._unsaved:
            overflow = self._rooms.overflow_of(self._session_key)
            name, text = next(iter(self._unsaved.items()))
            try:
                await asyncio.to_thread(overflow.put, name, text)
            except (WorkspaceError, OSError) as error:
                log.warning("code of an answer could not be written", reason=str(error))
            self._unsaved.pop(name, None)
