"""The vendors' own SDKs read the stand-ins' streams and errors: a second client besides ours."""

from __future__ import annotations

import json

import pytest

from tests.standins.anthropic_server import AnthropicServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Break, Call, Fail, Say, Stop, Think

pytestmark = pytest.mark.xdist_group("anthropic")

USER = {"role": "user", "content": "Hello"}


async def test_the_anthropic_sdk_reads_raw_events_and_errors() -> None:
    import anthropic

    async with AnthropicServer() as server:
        client = anthropic.AsyncAnthropic(base_url=server.url, api_key="test-key", max_retries=0)
        request = {"model": "claude-test", "max_tokens": 4096, "messages": []}
        talk = {"messages": [USER], "thinking": {"type": "adaptive"}}

        server.add(Think("Let me see."), Say("I look."), Call("read", {"path": "a.txt"}), Call("list", {}))
        stream = await client.messages.create(**request, stream=True, extra_body=talk)  # type: ignore[call-overload]
        events = [event async for event in stream]
        kinds = [event.type for event in events]
        assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
        starts = [event.content_block.type for event in events if event.type == "content_block_start"]
        assert starts == ["thinking", "text", "tool_use", "tool_use"]
        deltas = [event.delta for event in events if event.type == "content_block_delta"]
        assert "".join(delta.thinking for delta in deltas if delta.type == "thinking_delta") == "Let me see."
        pieces = [delta.partial_json for delta in deltas if delta.type == "input_json_delta"]
        assert "".join(pieces) == '{"path": "a.txt"}{}'
        assert (events[-2].delta.stop_reason, events[-2].usage.output_tokens > 3) == ("tool_use", True)

        server.add(Think("hm"), Say("done"), Stop("refusal"))
        async with client.messages.stream(**request, extra_body=talk) as helper:  # type: ignore[arg-type]
            message = await helper.get_final_message()
        assert [block.type for block in message.content] == ["thinking", "text"]
        assert message.stop_reason == "refusal"

        server.add(Fail(529))
        with pytest.raises(anthropic.APIStatusError) as overloaded:
            await client.messages.create(**request, extra_body=talk)  # type: ignore[call-overload]
        assert overloaded.value.status_code == 529
        server.add("half of", Fail(529))
        stream = await client.messages.create(**request, stream=True, extra_body=talk)  # type: ignore[call-overload]
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            [event async for event in stream]
        server.add("half of", Break())
        stream = await client.messages.create(**request, stream=True, extra_body=talk)  # type: ignore[call-overload]
        with pytest.raises(Exception, match=r"peer closed connection|incomplete"):
            [event async for event in stream]
        await client.close()


async def test_the_openai_sdk_reads_raw_chunks_and_errors() -> None:
    import openai

    async with OpenAIServer(models=["gpt-5.1"]) as server:
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="test-key", max_retries=0)
        talk = {"messages": [USER], "stream_options": {"include_usage": True}}
        request = {"model": "gpt-5.1", "messages": [], "stream": True, "extra_body": talk}

        server.add(Think("Let me see."), Say("I look."), Call("read", {"path": "a.txt"}), Call("list", {}))
        stream = await client.chat.completions.create(**request)  # type: ignore[call-overload]
        chunks = [chunk async for chunk in stream]
        assert (chunks[0].choices[0].delta.role, chunks[-1].choices) == ("assistant", [])
        assert chunks[-1].usage.completion_tokens_details.reasoning_tokens > 0
        assert chunks[-2].choices[0].finish_reason == "tool_calls"
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert "".join(delta.content or "" for delta in deltas) == "I look."
        calls = [call for delta in deltas for call in delta.tool_calls or ()]
        assert [(call.index, call.function.name) for call in calls if call.id] == [(0, "read"), (1, "list")]
        arguments = "".join(call.function.arguments for call in calls if call.index == 0)
        assert json.loads(arguments) == {"path": "a.txt"}

        server.add(Fail(429, "insufficient_quota"))
        with pytest.raises(openai.RateLimitError) as limited:
            await client.chat.completions.create(**request)  # type: ignore[call-overload]
        assert (limited.value.code, limited.value.type) == ("insufficient_quota", "insufficient_quota")
        server.add("half of", Fail(503))
        stream = await client.chat.completions.create(**request)  # type: ignore[call-overload]
        with pytest.raises(openai.APIError) as broken:
            [chunk async for chunk in stream]
        assert broken.value.code == "server_is_overloaded"
        server.add("half of", Break())
        stream = await client.chat.completions.create(**request)  # type: ignore[call-overload]
        with pytest.raises(Exception, match=r"peer closed connection|incomplete|Connection"):
            [chunk async for chunk in stream]
        assert [model.id async for model in client.models.list()] == ["gpt-5.1"]
        await client.close()
