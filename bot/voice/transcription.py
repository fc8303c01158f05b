"""Writes down what was said in a recording, by an endpoint (`audio/transcriptions`) or a program of the operator."""

import asyncio
import json
import mimetypes
import os
import tempfile
from pathlib import Path, PurePath

from agent import programs
from agent.tools.exec import scrubbed
from bot.config.voice import Transcription
from bot.voice.endpoint import VoiceError, post

SECONDS = 120.0
MAX_ANSWER = 1_000_000
# Endings of names by which endpoints tell formats, for those of platforms that they do not know.
_ENDINGS = {".oga": ".ogg", ".opus": ".ogg", ".aac": ".m4a", ".weba": ".webm", "": ".ogg"}


class Transcriber:
    """See the module. folder: where recordings lie while a program reads them."""

    def __init__(self, settings: Transcription, folder: Path) -> None:
        self._settings, self._folder = settings, folder

    async def text_of(self, content: bytes, name: str, mime: str) -> str:
        """Return what was said. name, mime: of the recording, or empty. Raises VoiceError."""
        ending = (mimetypes.guess_extension(mime.partition(";")[0]) or PurePath(name).suffix).lower()
        ending = _ENDINGS.get(ending, ending)
        said = await (self._run(content, ending) if self._settings.command else self._ask(content, ending, mime))
        return said.strip()

    async def _ask(self, content: bytes, ending: str, mime: str) -> str:
        given = self._settings
        form = {"model": given.model, "response_format": "json"}
        files = {"file": (f"recording{ending}", content, mime or "application/octet-stream")}
        url = f"{given.base_url}/audio/transcriptions"
        answer = await post(url, given.api_key, MAX_ANSWER, SECONDS, data=form, files=files)
        try:
            text = json.loads(answer)["text"]
        except (ValueError, KeyError, TypeError, RecursionError):
            text = None
        if not isinstance(text, str):
            raise VoiceError("the endpoint answered with something else than a text")
        return text

    async def _run(self, content: bytes, ending: str) -> str:
        """Run the program with a copy of the recording, without secrets in its environment; all of it ends."""
        with tempfile.NamedTemporaryFile(dir=await asyncio.to_thread(_made, self._folder), suffix=ending) as copy:
            await asyncio.to_thread(copy.write, content)
            copy.flush()
            command = [part.replace("{file}", copy.name) for part in self._settings.command]
            env = scrubbed(os.environ)
            try:
                code, said, _ = await programs.run(command, b"", env, self._folder, MAX_ANSWER, SECONDS)
            except TimeoutError:
                raise VoiceError(f"the program took more than {SECONDS:g} seconds") from None
            except OSError as error:
                raise VoiceError(f"the program cannot be started: {error.strerror}") from None
            except programs.TooMuch:
                raise VoiceError("the program prints too much") from None
        if code:
            raise VoiceError(f"the program ended with code {code}")
        return said.decode(errors="replace")


def _made(folder: Path) -> Path:
    folder.mkdir(0o700, parents=True, exist_ok=True)
    return folder
