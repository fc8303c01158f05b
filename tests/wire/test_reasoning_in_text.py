"""Reasoning that a server leaves in its text, through the real clients: the same clean words on every surface."""

from pathlib import Path

import pytest

from agent.events import MessageEnd, MessageUpdate
from bot import wording
from tests.service import running
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.model_server import ModelServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Say
from tests.wire.test_prefix import settings

SAID = "<think>They greet.\n</think>\n\nGood `<day>`"


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(AnthropicServer, marks=pytest.mark.xdist_group("anthropic")),
        pytest.param(OpenAIServer, marks=pytest.mark.xdist_group("openai")),
    ],
)
async def test_reasoning_in_text_is_thinking(tmp_path: Path, made: type[ModelServer]) -> None:
    async with made(keys=["test-key"]) as server, running(tmp_path, config=settings(server), chosen=True) as hark:
        server.add(Say(SAID, chunks=[SAID]))
        server.add(Say(SAID, chunks=tuple(SAID)))
        server.add("<think>They go")
        server.add("<think>They go")
        for _ in range(2):
            reply = await hark.say("hello")
            told = {"text": "", "thinking": ""}
            for update in reply.of(MessageUpdate):
                assert len(told[update.part]) == update.offset
                told[update.part] += update.delta
            assert told == {"text": "Good `<day>`", "thinking": "They greet.\n"}
            assert (reply.texts, reply.of(MessageEnd)[0].text) == (["Good `<day>`"], "Good `<day>`")
        silent = await hark.say("bye")
        kept = hark.stored.entries("body", kind="assistant")
    assert silent.texts == [wording.failure(silent.end.error_kind, silent.end.error_message)]
    assert "They go" not in silent.texts[0]
    assert len(kept) == 2
    assert all('"type":"thinking"' in body and "<think>" not in body for (body,) in kept)
    assert all("They greet" not in str(request.body) for request in server.requests)
