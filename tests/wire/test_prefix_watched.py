"""What the log says of a provider's cache, by the usage that the stand-ins count through the vendors' own libraries."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.prompt.build import Prompt, Section
from bot.store.codec import PROMPT
from tests.service import Hark, session_of
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.model_server import ModelServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Call
from tests.wire.test_prefix import check_prefixes, served

pytestmark = pytest.mark.xdist_group("anthropic")

TURNS = 20


async def turns(hark: Hark, server: ModelServer, count: int) -> None:
    """Let the owner write so many messages, each answered by a call and an answer."""
    for number in range(count):
        server.add(Call("act", {"label": str(number)}))
        server.add(f"Answer {number}.")
        await hark.say(f"message {number}")


@pytest.mark.parametrize("provider", [AnthropicServer, OpenAIServer])
async def test_over_many_turns_the_prefix_is_read_from_the_cache(tmp_path: Path, provider: type[ModelServer]) -> None:
    async with provider() as server, served(tmp_path, server) as hark:
        with capture_logs() as lines:
            await turns(hark, server, TURNS)
        check_prefixes(server.requests)
        assert len(server.requests) == 2 * TURNS
        usage = hark.ends(session_of("1"))[-1].usage
    assert usage.cache_read > 0.9 * usage.input
    assert [line for line in lines if "cache" in line["event"]] == []


@pytest.mark.parametrize("provider", [AnthropicServer, OpenAIServer])
async def test_a_prompt_that_changes_is_named(tmp_path: Path, provider: type[ModelServer]) -> None:
    async with provider() as server, served(tmp_path, server) as hark:
        server.tolerate("prefix changed")
        await turns(hark, server, 3)
        found = await hark.service.parts.store.reads.prompt(session_of("1"))
        assert found is not None
        assert found[1] is not None
        stern = Section("SOUL.md", "Be stern.", is_file=True)
        changed = Prompt(tuple(stern if one.name == stern.name else one for one in found[1].sections))
        hark.stored.spoil("UPDATE transcript SET prompt=? WHERE transcript_id=?", PROMPT.dump(changed), found[0])
        with capture_logs() as lines:
            await turns(hark, server, 2)
    told = [line for line in lines if "cache" in line["event"]]
    assert [(line["log_level"], line["changed"]) for line in told] == [("warning", "file SOUL.md")]
    assert told[0]["tokens_read"] < told[0]["tokens_cached"]
