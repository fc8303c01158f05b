"""Says answers aloud, by an endpoint (`audio/speech`): which answers that are, and the sound of one when it is sent.

A spoken answer is a delivery like others, planned with the end of the turn behind its text. Its file bears the words
(`OutgoingFile.says`), and the sound is made of them when it is to be sent: so no text waits for it, and whatever
crashes, it is sent once.
"""

import asyncio
import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from bot.config.voice import Speech as SpeechSection
from bot.voice.endpoint import VoiceError, post
from channels.markdown.formatted import EntityType
from channels.markdown.render import render
from channels.outgoing import OutgoingFile

SECONDS = 60.0
# The most characters of an answer that are said aloud, as many as OpenAI takes.
LONGEST = 4096
_MAX_BYTES = 10 * 1024 * 1024
# Seconds after which a sound that was sent, or not, is deleted with the next one.
_KEPT = 600.0


def speakable(markdown: str) -> str:
    """Return the words of an answer as they are said: without code and tables, and of a long one the beginning."""
    shown = render(markdown, lambda url, words: True)
    text, at = "", 0
    for one in shown.entities:
        if one.style.type is EntityType.PRE:
            text, at = text + shown.text[at : one.start], one.end
    words = (text + shown.text[at:]).strip()
    if len(words) <= LONGEST:
        return words
    end = max(words.rfind(mark, 0, LONGEST) for mark in (". ", "! ", "? ", "\n", "。"))
    return words[: end + 1 if end > 0 else LONGEST].strip()


class Speech:
    """See the module. folder: where sounds lie until they are sent."""

    def __init__(self, settings: SpeechSection, folder: Path) -> None:
        self._settings, self._folder = settings, folder

    def file(self, says: str, *, as_voice: bool) -> OutgoingFile:
        """Return the file of words. as_voice: whether the channel has voice messages, else it is a file with sound."""
        ending, mime = (".ogg", "audio/ogg") if as_voice else (".mp3", "audio/mpeg")
        name = hashlib.sha256(says.encode(errors="replace")).hexdigest()[:32] + ending
        return OutgoingFile(path=str(self._folder.absolute() / name), name=f"answer{ending}", mime=mime, says=says)

    async def make(self, file: OutgoingFile) -> str:
        """Make the sound of a file that bears words, unless it is there; returns why it could not be, or nothing."""
        path, given = Path(file.path), self._settings
        if await asyncio.to_thread(path.exists):
            return ""
        asked = {
            "model": given.model,
            "voice": given.voice,
            "input": file.says,
            "response_format": "opus" if path.suffix == ".ogg" else "mp3",
        }
        try:
            url = f"{given.base_url}/audio/speech"
            sound = await post(url, given.api_key, _MAX_BYTES, SECONDS, json=asked)
            if not sound:
                raise VoiceError("the endpoint made no sound")
            await asyncio.to_thread(_put, path, sound)
        except (VoiceError, OSError) as error:
            return f"(I could not say this aloud: {error}.)"
        return ""


def _put(path: Path, sound: bytes) -> None:
    """Write a sound as a whole or not at all, and delete old ones. Raises OSError."""
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    with os.scandir(path.parent) as entries:
        for entry in entries:
            with suppress(OSError):  # another answer that is said aloud deletes them too
                if entry.stat().st_mtime < time.time() - _KEPT:
                    os.unlink(entry)
    part = path.with_suffix(".part")
    part.write_bytes(sound)
    part.replace(path)
