"""Files that came with the messages of a turn: downloaded before its first model call, saved, and shown to the model.

They are saved in `media/<session>/` of the session's room, under names made from the key of the message, so that a file
is not downloaded again after a crash. One transcript line after the messages shows the files to the model: texts in
full, images (which `agent/images.py` loads by path), other files by path, missing files with the reason. What was said
in a recording is written down where that is configured, and kept beside the file, so that it is done once; people are
told in a line what was understood.
"""

import asyncio
import hashlib
import mimetypes
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import PurePath

import structlog

from agent.context import Context
from agent.documents import NotRead, is_document, pages_of
from agent.fences import harmless
from agent.images import FILES
from agent.message import Image, Mark, Message, Part, Text
from agent.pictures import MAX_IMAGE_BYTES, image_type
from agent.tools.workspace import NotThere, Workspace, WorkspaceError
from bot.compose import fenced, named, said_aloud, shortened
from bot.persistence.turns import Turn
from bot.runs.rooms import Rooms
from bot.speech import spoken
from bot.voice.endpoint import VoiceError
from bot.voice.transcription import Transcriber
from channels.base import Channel, NotDownloaded
from channels.message import Attachment, InboundMessage, Place
from channels.outgoing import OutgoingFile
from channels.sources import Source, sentence

log = structlog.get_logger()

FOLDER = "media"
# The most files of one turn that are downloaded, and the most images among them that are shown.
MAX_FILES = 20
MAX_SHOWN = 10
MAX_FILE_BYTES = 20 * 1024 * 1024
# The most characters of one file that are shown, for all files of a turn twice as many; `read` shows the rest.
MAX_TEXT = 20_000
# Seconds for all downloads of a turn together, and for what was said in them.
SECONDS, HEARING = 120.0, 180.0
# Characters of what was understood that people are shown.
_HEARD = 600
_FAMILIES = {"audio": "it cannot be heard here", "video": "it cannot be seen here"}


class Media:
    """Downloads and saves the files of turns.

    rooms: hold the saved files. channel_of: returns the channel of a place; None: it is not connected. transcriber:
    writes down what is said in recordings; None: nobody does.
    """

    def __init__(
        self, rooms: Rooms, channel_of: Callable[[Place], Channel | None], transcriber: Transcriber | None = None
    ) -> None:
        self._rooms = rooms
        self._channel_of = channel_of
        self._transcriber = transcriber

    async def of(self, turn: Turn, context: Context, say: Callable[[Source, str], Awaitable[None]]) -> Message | None:
        """Return the transcript line with the files of a turn; None: there are no files, or the line is there.

        say: tells people a sentence, once per source.
        """
        found = [(message, n, file) for message in turn.messages for n, file in enumerate(message.attachments)]
        for message in turn.messages:  # behind what was sent to it
            if message.replied or message.overheard:
                sent = len(message.attachments)
                found += [(message, n, file) for n, file in enumerate(message.files[sent:], sent)]
        own = [entry for entry in context.entries if entry.turn_id == turn.turn_id]
        if not found or any(entry.message.mark is Mark.FILES for entry in own):
            return None
        shown, workspace = _Shown(), self._rooms.inside(turn.session_key).workspace
        until = asyncio.get_running_loop().time() + SECONDS
        for message, n, file in found[:MAX_FILES]:
            path = saved_as(turn.session_key, message, n)
            try:
                async with asyncio.timeout_at(until):
                    content = await _fetched(workspace, self._channel_of(turn.place), file, path)
            except TimeoutError:
                shown.missing(file, "it took too long to load")
            except (NotDownloaded, WorkspaceError) as error:
                shown.missing(file, str(error))
            except Exception:
                log.exception("a file could not be loaded", turn=turn.turn_id)
                shown.missing(file, "loading it failed")
            else:
                words = None
                if self._transcriber is not None and (file.spoken or file.kind == "audio"):
                    words, told = await self._heard(workspace, file, path, content, until + HEARING)
                    if n < len(message.attachments):
                        await say(sentence("heard", path), told)
                if is_document(content):
                    await shown.document(file, path, content)
                else:
                    shown.add(message, file, path, content, words)
        await self._tell_dropped(turn, say)
        if len(found) > MAX_FILES:
            shown.say(f"{len(found) - MAX_FILES} more were not loaded: at most {MAX_FILES} are")
        said = [Text(f"{words}\n\n") for words in shown.said]
        return Message("user", (*said, Text(FILES), *shown.parts), mark=Mark.FILES)

    async def _tell_dropped(self, turn: Turn, say: Callable[[Source, str], Awaitable[None]]) -> None:
        """Tell people, once, that older files of theirs went because there was no room for them."""
        disk, room = self._rooms.disk, self._rooms.of(turn.session_key).name
        if disk is not None and room and await asyncio.to_thread(disk.has_dropped, room):
            why = f"The files here took more than {disk.limit // 10**6:,} MB"
            await say(sentence("disk", room), f"{why}, so I deleted the oldest you sent.")

    async def _heard(
        self, workspace: Workspace, file: Attachment, path: str, content: bytes, until: float
    ) -> tuple[str | None, str]:
        """Return what is said in a recording, None if it cannot be written down, and what people are told of it."""
        assert self._transcriber is not None
        try:
            async with asyncio.timeout_at(until):
                words = await _kept(workspace, f"{path}.txt", self._transcriber, file, content)
        except (VoiceError, TimeoutError, WorkspaceError) as error:
            why = str(error) or "it took too long"
            return None, f"I could not make out what is said in your recording: {why}."
        shown = " ".join(words.split())
        shown = shown if len(shown) <= _HEARD else f"{shown[:_HEARD]}…"
        return words, spoken(f"🎙 “{shown}”") if shown else "I heard no words in your recording."


async def _kept(workspace: Workspace, path: str, transcriber: Transcriber, file: Attachment, content: bytes) -> str:
    """Return what is said in a recording, which is written down unless that was done before a crash.

    path: where it is kept. Raises VoiceError, WorkspaceError.
    """

    def kept() -> str:
        with workspace.open(path) as found:
            return found.read().decode(errors="replace")

    try:
        return await asyncio.to_thread(kept)
    except NotThere:
        words = await transcriber.text_of(content, file.name, file.mime)
        await workspace.write(path, words.encode(errors="replace"), "create")
        return words


class _Shown:
    """Collects the parts of the transcript line, within the limits for one turn."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        # What people have said themselves.
        self.said: list[str] = []
        self._images = 0
        self._text = 2 * MAX_TEXT

    def say(self, line: str) -> None:
        self.parts.append(Text(f"\n{line}"))

    def missing(self, file: Attachment, reason: str) -> None:
        """Name a file that could not be loaded, with the reason."""
        self.say(f"{_called(file)}; not loaded: {' '.join(harmless(reason).split())[:200]}")

    def add(self, message: InboundMessage, file: Attachment, path: str, content: bytes, words: str | None) -> None:
        """Name a saved file, and show its content if it is an image or text, or what is said in it (words)."""
        line = f"{_called(file)}, {len(content):,} bytes, saved as {path}"
        if mime := image_type(content):
            self._images += 1
            if len(content) > MAX_IMAGE_BYTES or self._images > MAX_SHOWN:
                self.say(f"{line}; not shown: too large, or one of too many")
            else:
                self.say(line)
                self.parts.append(Image(mime, "", path))
        elif words is not None and file.spoken:
            shown = self._bounded(words)
            self.said.append(said_aloud(message, shown))
            self.say(line if shown == words else f"{line}; all that was said: `read` of {path}.txt")
        elif (text := _text(content) if words is None else words) is not None:
            shown = self._bounded(text)
            line += "" if words is None else f"; what is said in it, as a machine has written it down in {path}.txt"
            self.say("\n".join((line if shown == text else f"{line}; all of it: `read`", *fenced("file", shown))))
        else:
            self.say("; ".join(filter(None, (line, _FAMILIES.get(file.kind)))))

    async def document(self, file: Attachment, path: str, content: bytes) -> None:
        """Name a saved document, and show its first pages."""
        line = f"{_called(file)}, {len(content):,} bytes, saved as {path}"
        try:
            found = await pages_of(content, 1, min(MAX_TEXT, max(1, self._text)))
        except NotRead as error:
            self.say(f"{line}; {error}")
            return
        pages = f"{found.count} page{'s' if found.count != 1 else ''}"
        more = f"; from page {found.last + 1} on: `read` with page" if found.last < found.count else ""
        self.say("\n".join((f"{line}; {pages}{more}", *fenced("file", self._bounded(found.text)))))

    def _bounded(self, text: str) -> str:
        """Return as much of a text as may be shown."""
        shown = shortened(text, min(MAX_TEXT, max(0, self._text)))
        self._text -= len(shown)
        return shown


def outgoing_file(workspace: Workspace, path: str, largest: int) -> OutgoingFile:
    """Return a file of the workspace that is to be sent. Blocks. Raises WorkspaceError.

    largest: how many bytes a file may have on the channel.
    """
    with workspace.open(path) as file:
        size = file.seek(0, 2)
    if not 0 < size <= largest:
        raise WorkspaceError(f"{path}: has {size:,} bytes; 1 to {largest:,} can be sent there")
    whole = workspace.root.joinpath(*workspace.relative(path))
    return OutgoingFile(path=str(whole), name=whole.name, mime=mimetypes.guess_type(whole.name)[0] or "")


async def _fetched(workspace: Workspace, channel: Channel | None, file: Attachment, path: str) -> bytes:
    """Return the content of a file, downloading and saving it unless it is saved already.

    Raises NotDownloaded, WorkspaceError or any error of the channel.
    """

    def saved() -> bytes:
        with workspace.open(path) as kept:
            return kept.read()

    try:
        return await asyncio.to_thread(saved)
    except NotThere:
        pass
    if channel is None:
        raise NotDownloaded("its channel is not connected")
    content = await _downloaded(channel.download(file), file.size)
    await workspace.write(path, content, "create")
    return content


async def _downloaded(pieces: AsyncIterator[bytes], size: int) -> bytes:
    """Return a downloaded file as a whole. size: its bytes as the platform says. Raises NotDownloaded if too large."""
    content = bytearray()
    if size <= MAX_FILE_BYTES:
        async for piece in pieces:
            content += piece
            if len(content) > MAX_FILE_BYTES:
                break
    if max(size, len(content)) > MAX_FILE_BYTES:
        raise NotDownloaded(f"it has more than {MAX_FILE_BYTES // 1024**2} MB")
    return bytes(content)


def folder_of(session_key: str) -> str:
    """Return the folder of the files that came in a session."""
    session = hashlib.sha256(session_key.encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9-]+", "-", session_key.removeprefix("agent:main:"))[:48]
    return f"{FOLDER}/{readable}-{session}"


def saved_as(session_key: str, message: InboundMessage, n: int) -> str:
    """Return the path under which the n-th of `message.files` is saved: unique, and the same for every attempt."""
    place = message.origin.place
    key = hashlib.sha256("\n".join((place.channel, place.account, message.event_key)).encode()).hexdigest()[:12]
    return f"{folder_of(session_key)}/{key}-{n}-{_safe_name(message.files[n])}"


def _safe_name(file: Attachment) -> str:
    """Return a name for a file that file systems accept, whatever the sender called the file."""
    name = re.sub(r"[^\w.-]+", "_", file.name).strip("._")
    if not name:
        name = file.kind + (mimetypes.guess_extension(file.mime.partition(";")[0]) or "")
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    return stem.encode()[:80].decode(errors="ignore") + suffix.encode()[:16].decode(errors="ignore")


def _called(file: Attachment) -> str:
    called = f"{named(file.name)}: {file.kind}" if file.name else file.kind
    return f"of the message replied to or of one before: {called}" if file.by else called


def _text(content: bytes) -> str | None:
    """Return the text of a text file; None for any other file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
