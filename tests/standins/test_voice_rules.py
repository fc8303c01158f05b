"""The stand-in for OpenAI's endpoints of sound refuses what their reference does not allow."""

from typing import Any

import aiohttp
import pytest

from tests.standins import voice_server
from tests.standins.voice_server import KEY, MAX_INPUT, VoiceServer

AUDIO = b"OggS"


async def post(server: VoiceServer, path: str, key: str = KEY, **request: Any) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{server.base_url}/audio/{path}", **request) as answer,
    ):
        return answer.status


def form(content: bytes | None = AUDIO, name: str = "a.ogg", **fields: str) -> aiohttp.FormData:
    made = aiohttp.FormData(default_to_multipart=True)
    if content is not None:
        made.add_field("file", content, filename=name)
    for field, value in ({"model": "whisper-1"} | fields).items():
        made.add_field(field, value)
    return made


async def test_what_the_reference_allows_is_answered() -> None:
    async with VoiceServer() as server:
        assert await post(server, "transcriptions", data=form(response_format="json")) == 200
        said = {"model": "tts-1", "input": "hello", "voice": "alloy", "response_format": "opus"}
        assert await post(server, "speech", json=said) == 200
        assert (server.heard[0].content, server.spoken) == (AUDIO, [said])


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"data": form(), "key": "other"}, 401),
        ({"data": form(None)}, 400),
        ({"data": form(b"")}, 400),
        ({"data": form(b"x" * 11)}, 400),
        ({"data": form(name="a.oga")}, 400),
        ({"data": form(model="whisper")}, 400),
        ({"data": form(response_format="xml")}, 400),
        ({"data": form(model="gpt-4o-transcribe", response_format="srt")}, 400),
        ({"data": form(voice="alloy")}, 400),
        ({"json": {"model": "whisper-1"}}, 400),
    ],
)
async def test_a_transcription_that_is_not_allowed_is_refused(
    request_: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voice_server, "MAX_FILE", 10)
    async with VoiceServer() as server:
        assert await post(server, "transcriptions", **request_) == status
        assert len(server.refused) == 1
        server.refused.clear()


@pytest.mark.parametrize(
    "change",
    [
        {"model": "tts"},
        {"input": ""},
        {"input": "x" * (MAX_INPUT + 1)},
        {"voice": "bob"},
        {"response_format": "ogg"},
        {"speed": 9},
        {"language": "en"},
    ],
)
async def test_speech_that_is_not_allowed_is_refused(change: dict[str, Any]) -> None:
    async with VoiceServer() as server:
        assert await post(server, "speech", json={"model": "tts-1", "input": "hi", "voice": "alloy"} | change) == 400
        assert await post(server, "speech", data="hello") == 400
        assert len(server.refused) == 2
        server.refused.clear()
