"""The stand-in for OpenAI's embeddings refuses what their reference does not allow."""

from typing import Any

import aiohttp
import pytest

from tests.standins.embeddings_server import KEY, MAX_INPUTS, MAX_TOKENS, EmbeddingsServer

GOOD = {"model": "text-embedding-3-small", "input": ["a car", "an automobile"]}


async def post(server: EmbeddingsServer, key: str = KEY, **request: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{server.base_url}/embeddings", **request) as answer,
    ):
        return answer.status, await answer.json()


async def test_what_the_reference_allows_is_answered() -> None:
    async with EmbeddingsServer() as server:
        status, answer = await post(server, json=GOOD)
        assert status == 200
        assert sorted(one["index"] for one in answer["data"]) == [0, 1]
        assert (await post(server, json=GOOD | {"input": "one text", "encoding_format": "float"}))[0] == 200
        assert server.asked == [GOOD["input"], ["one text"]]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "gpt-6"},
        {"input": ""},
        {"input": []},
        {"input": ["a", ""]},
        {"input": [1]},
        {"input": ["a"] * (MAX_INPUTS + 1)},
        {"input": "x" * (4 * MAX_TOKENS + 1)},
        {"encoding_format": "int8"},
        {"prompt": "a"},
    ],
)
async def test_what_is_not_allowed_is_refused(change: dict[str, Any]) -> None:
    async with EmbeddingsServer() as server:
        assert (await post(server, json=GOOD | change))[0] == 400
        assert (await post(server, data="hello"))[0] == 400
        assert (await post(server, key="other", json=GOOD))[0] == 401
        assert len(server.refused) == 3
        server.refused.clear()
