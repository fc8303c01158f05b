"""A stand-in on loopback for OpenAI's endpoints of sound: `POST /v1/audio/transcriptions` and `POST /v1/audio/speech`.

Written from the pages "Create transcription" and "Create speech" of OpenAI's reference: what they do not allow is
refused with 400 (401 without the key) and noted in `refused`, which a test that ends well finds empty.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.standins.endpoint import Endpoint, Wrong

KEY = "sound-key-0123456789"
ENDINGS = ("flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm")
MAX_FILE = 25 * 1024 * 1024
WRITES = ("whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize")
SPEAKS = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
VOICES = (
    "alloy",
    "ash",
    "ballad",
    "coral",
    "echo",
    "fable",
    "onyx",
    "nova",
    "sage",
    "shimmer",
    "verse",
    "marin",
    "cedar",
)
SOUNDS = {"mp3": b"ID3", "opus": b"OggS", "aac": b"\xff\xf1", "flac": b"fLaC", "wav": b"RIFF", "pcm": b"\x00\x00"}
MAX_INPUT = 4096
_OF_TRANSCRIPTION = {"file", "model", "language", "prompt", "response_format", "temperature", "stream"} | {
    *("timestamp_granularities[]", "include[]", "chunking_strategy", "known_speaker_names[]"),
    "known_speaker_references[]",
}
_OF_SPEECH = {"model", "input", "voice", "response_format", "speed", "instructions", "stream_format"}


@dataclass(frozen=True)
class Recording:
    """A request to write something down."""

    name: str
    content: bytes
    model: str


class VoiceServer(Endpoint):
    """See the module.

    says: what is understood of a recording. came: called when a request comes.
    """

    key = KEY

    def __init__(self, came: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.routes = {"/v1/audio/transcriptions": self._transcription, "/v1/audio/speech": self._speech}
        self.says: str | Callable[[bytes], str] = "turn on the light"
        self.came = came
        self.heard: list[Recording] = []
        self.spoken: list[dict[str, Any]] = []

    async def _transcription(self, request: web.Request) -> web.Response:
        try:
            self.check(request, "multipart/form-data")
            recording = _recording(dict(await request.post()))
        except Wrong as wrong:
            return self.refuse(wrong)
        self.heard.append(recording)
        self.came()
        text = self.says if isinstance(self.says, str) else self.says(recording.content)
        return await self.answer(web.json_response({"text": text}))

    async def _speech(self, request: web.Request) -> web.Response:
        try:
            self.check(request, "application/json")
            asked = _speech(json.loads(await request.text()))
        except Wrong as wrong:
            return self.refuse(wrong)
        self.spoken.append(asked)
        self.came()
        sound = SOUNDS[asked.get("response_format", "mp3")] + asked["input"].encode()
        return await self.answer(web.Response(body=sound, content_type="application/octet-stream"))


def _recording(form: dict[str, Any]) -> Recording:
    if unknown := form.keys() - _OF_TRANSCRIPTION:
        raise Wrong(f"unknown fields: {sorted(unknown)}")
    file = form.get("file")
    if not isinstance(file, web.FileField):
        raise Wrong("file is missing")
    content = file.file.read()
    if file.filename.rpartition(".")[2] not in ENDINGS:
        raise Wrong(f"the format of {file.filename} is none of {ENDINGS}")
    if not 0 < len(content) <= MAX_FILE:
        raise Wrong("file: 1 byte to 25 MB")
    if form.get("model") not in WRITES:
        raise Wrong(f"model: {form.get('model')}")
    formats = ("json", "text", "srt", "verbose_json", "vtt") if form["model"] == "whisper-1" else ("json", "text")
    if form.get("response_format", "json") not in formats:
        raise Wrong(f"response_format: {form['response_format']}")
    return Recording(file.filename, content, form["model"])


def _speech(asked: Any) -> dict[str, Any]:
    if not isinstance(asked, dict) or asked.keys() - _OF_SPEECH:
        raise Wrong("unknown fields")
    if asked.get("model") not in SPEAKS:
        raise Wrong(f"model: {asked.get('model')}")
    if not isinstance(asked.get("input"), str) or not 0 < len(asked["input"]) <= MAX_INPUT:
        raise Wrong(f"input: 1 to {MAX_INPUT} characters")
    if asked.get("voice") not in VOICES:
        raise Wrong(f"voice: {asked.get('voice')}")
    if asked.get("response_format", "mp3") not in SOUNDS:
        raise Wrong(f"response_format: {asked['response_format']}")
    if not 0.25 <= asked.get("speed", 1.0) <= 4.0:
        raise Wrong(f"speed: {asked['speed']}")
    return asked
