"""A conversation with a model of Ollama, whose server cuts what does not fit into the context that it has chosen."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.service import running
from tests.standins.ollama_server import OllamaServer
from tests.standins.request_log import Request

FACT = "The code of the door is 4711."
LONG = "We talk about the weather of the day. " * 100
"""About a thousand tokens."""


def answer(request: Request) -> str:
    """What the model says; a summary has the fact if it was asked about it."""
    asked = json.dumps(request.body["messages"][-1])
    return FACT if "ummar" in asked and FACT in json.dumps(request.body) else "I see."


@pytest.mark.parametrize(("window", "trained"), [(16_384, 131_072), (32_768, 13_000)])
async def test_nothing_is_left_out_in_silence(tmp_path: Path, window: int, trained: int) -> None:
    async with OllamaServer(trained=trained) as server:
        server.default = answer
        server.tolerate("prefix changed")  # by the summaries
        models = {"qwen3:8b": {"context_window": window, "max_output": 512}}
        settings: dict[str, Any] = {
            "agent": {"model": "ollama/qwen3:8b"},
            "providers": {"ollama": {"base_url": server.base_url, "models": models}},
        }
        async with running(tmp_path, config=settings, chosen=True) as hark:
            for words in (FACT, *(f"{number}: {LONG}" for number in range(9)), "What is the code of the door?"):
                assert (await hark.say(words)).texts[-1] == "I see."
        kept = [len(request.body["messages"]) for request in server.requests]
        assert ([len(seen) for seen in server.seen], server.shifted) == (kept, 0)
        assert FACT in json.dumps(server.seen[-1])
        assert server.calls.count("/api/create") == 1
