"""The files that came with the messages of a turn: downloaded before its first model call, saved, shown to the model.

They lie in `media/<session>/` of the session's room, under names made of the message's key, so that after a crash what
is there is not fetched again. What they hold stands in one line of the transcript behind the user lines: text as it is,
images by their path (`agent/images.py`), of the rest the path. What cannot be had is named with the reason.
"""

import asyncio
import hashlib
import mimetypes
import re
from collections.abc import AsyncIterator, Callable
from pathlib import PurePath

import structlog

from agent.context import Context
from agent.images import FILES, MAX_IMAGE_BYTES, image_type
from agent.message import Image, Mark, Message, Part, Text
from agent.tools.workspace import NotThere, Workspace, WorkspaceError
from bot.compose import fenced, harmless, named, shortened
from bot.persistence.turns import Turn
from bot.runs.rooms import Rooms
from channels.base import Channel, NotDownloaded
from channels.message import Attachment, InboundMessage, Place
from channels.outgoing import OutgoingFile

log = structlog.get_logger()

FOLDER = "media"
MAX_FILES = 20
# Images of one turn.
MAX_SHOWN = 10
MAX_FILE_BYTES = 20 * 1024 * 1024
# Characters shown of one file, and of all files of a turn twice as many; `read` shows the rest.
MAX_TEXT = 20_000
# For all downloads of a turn.
SECONDS = 120.0
_FAMILIES = {"audio": "it cannot be heard here", "video": "it cannot be seen here"}


class Media:
    """Fetches what came along. rooms: where it is kept. channel_of: the channel of a conversation."""

    def __init__(self, rooms: Rooms, channel_of: Callable[[Place], Channel | None]) -> None:
        self._rooms = rooms
        self._channel_of = channel_of

    async def of(self, turn: Turn, context: Context) -> Message | None:
        """What the model is shown of the files of a turn; None when there are none, or its transcript has it."""
        found = [(message, n, file) for message in turn.messages for n, file in enumerate(message.attachments)]
        own = [entry for entry in context.entries if entry.turn_id == turn.turn_id]
        if not found or any(entry.message.mark is Mark.FILES for entry in own):
            return None
        shown, workspace = _Shown(), self._rooms.inside(turn.session_key).workspace
        until = asyncio.get_running_loop().time() + SECONDS
        for message, n, file in found[:MAX_FILES]:
            path = _path(turn.session_key, message, n)
            try:
                async with asyncio.timeout_at(until):
                    shown.add(file, path, await _fetched(workspace, self._channel_of(turn.place), file, path))
            except TimeoutError:
                shown.missing(file, "it took too long to load")
            except (NotDownloaded, WorkspaceError) as error:
                shown.missing(file, str(error))
            except Exception:
                log.exception("a file could not be loaded", turn=turn.turn_id)
                shown.missing(file, "loading it failed")
        if len(found) > MAX_FILES:
            shown.say(f"{len(found) - MAX_FILES} more were not loaded: at most {MAX_FILES} are")
        return Message("user", (Text(FILES), *shown.parts), mark=Mark.FILES)


class _Shown:
    """The parts of the line, as far as the bounds for one turn go."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._images = 0
        self._text = 2 * MAX_TEXT

    def say(self, line: str) -> None:
        self.parts.append(Text(f"\n{line}"))

    def missing(self, file: Attachment, reason: str) -> None:
        """Name what is not there."""
        self.say(f"{_called(file)}; not loaded: {' '.join(harmless(reason).split())[:200]}")

    def add(self, file: Attachment, path: str, content: bytes) -> None:
        """Name what was saved, and show what can be shown of it."""
        line = f"{_called(file)}, {len(content):,} bytes, saved as {path}"
        if mime := image_type(content):
            self._images += 1
            if len(content) > MAX_IMAGE_BYTES or self._images > MAX_SHOWN:
                self.say(f"{line}; not shown: too large, or one of too many")
            else:
                self.say(line)
                self.parts.append(Image(mime, "", path))
        elif (text := _text(content)) is not None:
            shown = shortened(text, min(MAX_TEXT, max(0, self._text)))
            self._text -= len(shown)
            self.say("\n".join((line if shown == text else f"{line}; all of it: `read`", *fenced("file", shown))))
        else:
            self.say("; ".join(filter(None, (line, _FAMILIES.get(file.kind)))))


def outgoing_file(workspace: Workspace, path: str, largest: int) -> OutgoingFile:
    """A file of the workspace, to be sent where files have at most so many bytes. Blocking. Raises WorkspaceError."""
    with workspace.open(path) as file:
        size = file.seek(0, 2)
    if not 0 < size <= largest:
        raise WorkspaceError(f"{path}: has {size:,} bytes; 1 to {largest:,} can be sent there")
    whole = workspace.root.joinpath(*workspace.relative(path))
    return OutgoingFile(path=str(whole), name=whole.name, mime=mimetypes.guess_type(whole.name)[0] or "")


async def _fetched(workspace: Workspace, channel: Channel | None, file: Attachment, path: str) -> bytes:
    """What a file holds, which is saved then. Raises NotDownloaded, WorkspaceError, or a fault of the channel."""

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
    """All of them, within the bound. size: as the platform says it."""
    content = bytearray()
    if size <= MAX_FILE_BYTES:
        async for piece in pieces:
            content += piece
            if len(content) > MAX_FILE_BYTES:
                break
    if max(size, len(content)) > MAX_FILE_BYTES:
        raise NotDownloaded(f"it has more than {MAX_FILE_BYTES // 1024**2} MB")
    return bytes(content)


def _path(session_key: str, message: InboundMessage, n: int) -> str:
    """Where a file of a message lies: the same at every try, and no other one's."""
    place = message.origin.place
    key = hashlib.sha256("\n".join((place.channel, place.account, message.event_key)).encode()).hexdigest()[:12]
    session = hashlib.sha256(session_key.encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9-]+", "-", session_key.removeprefix("agent:main:"))[:48]
    return f"{FOLDER}/{readable}-{session}/{key}-{n}-{_safe_name(message.attachments[n])}"


def _safe_name(file: Attachment) -> str:
    """A name that a file system takes, whatever the sender called it."""
    name = re.sub(r"[^\w.-]+", "_", file.name).strip("._")
    if not name:
        name = file.kind + (mimetypes.guess_extension(file.mime.partition(";")[0]) or "")
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    return stem.encode()[:80].decode(errors="ignore") + suffix.encode()[:16].decode(errors="ignore")


def _called(file: Attachment) -> str:
    return f"{named(file.name)}: {file.kind}" if file.name else file.kind


def _text(content: bytes) -> str | None:
    """The words of a text file; None when it is none."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
