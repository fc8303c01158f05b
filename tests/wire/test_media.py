"""An image that came with a message, through the real service and the real SDKs: strict providers take it."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.models.base import ModelApi
from channels.message import Attachment
from tests.service import running
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.openai_server import OpenAIServer
from tests.wire.model_clients import KEY, client_of

PIXELS = b"\xff\xd8\xff pixels"
DATA = base64.b64encode(PIXELS).decode()
SERVERS: dict[ModelApi, Callable[..., Any]] = {"anthropic": AnthropicServer, "openai-chat": OpenAIServer}
SEEN: dict[ModelApi, object] = {
    "anthropic": {"type": "base64", "media_type": "image/jpeg", "data": DATA},
    "openai-chat": {"url": f"data:image/jpeg;base64,{DATA}"},
}


@pytest.mark.parametrize("api", SERVERS)
@pytest.mark.parametrize("vision", [True, False])
async def test_a_model_that_sees_is_shown_it_and_another_one_told(tmp_path: Path, api: ModelApi, vision: bool) -> None:
    async with SERVERS[api](keys=[KEY]) as server:
        client = client_of(api, server.url, vision=vision)
        async with running(tmp_path, client=client) as hark:
            hark.channel.files = {"photo": PIXELS}
            server.add("A cat.", "Still a cat.")
            await hark.write("what is it?", attachments=(Attachment(kind="image", ref="photo", mime="image/png"),))
            await hark.until_texts(1)
            await hark.say("sure?")
        await client.close()
        bodies = [request.body for request in server.requests]
        assert [DATA in str(body) for body in bodies] == [vision, vision]
        for body in bodies:
            blocks = [part for one in body["messages"] if isinstance(one["content"], list) for part in one["content"]]
            images = [part.get("source") or part.get("image_url") for part in blocks if "image" in part["type"]]
            assert images == ([SEEN[api]] if vision else [])
            assert ("[an image that this model cannot see]" in str(body)) == (not vision)
