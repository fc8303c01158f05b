"""What is sent to OpenAI and to servers that speak its language."""

from typing import Any

import pytest

from agent.message import Mark, Message, Text, Thinking, ToolResult
from agent.models.base import ThinkingLevel
from agent.models.openai_chat import ChunkReader, body_of
from tests.agent.models.makers import PNG, assistant, call, chunks, read, request, results, spec, user

LOCAL = spec("openai-chat", base_url="http://127.0.0.1:11434/v1")
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG.data}"}}


def messages(*given: Message, **options: Any) -> Any:
    return body_of(request(*given, system=""), spec("openai-chat", **options))["messages"]


def test_a_whole_request() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tools = [
        {"type": "function", "function": {"name": name, "description": words, "parameters": schema}}
        for name, words in (("read", "Read a file."), ("write", "Write a file."))
    ]
    body = body_of(request(user("hi")), spec("openai-chat", params=(("temperature", 0.5),)))
    assert body == {
        "model": "some-model",
        "max_completion_tokens": 4096,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "tools": tools,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }
    assert list(body)[-1] == "messages"
    assert not {"tools", "tool_choice"} & body_of(request(user("hi"), tools=(), allow_calls=False), LOCAL).keys()
    assert body_of(request(user("hi"), allow_calls=False), LOCAL)["tool_choice"] == "none"


@pytest.mark.parametrize(
    ("model", "base_url", "field"),
    [
        ("gpt-4o", "https://api.openai.com/v1", "max_completion_tokens"),
        ("gpt-4o", "", "max_completion_tokens"),
        ("qwen3:8b", "http://127.0.0.1:11434/v1", "max_tokens"),
        ("gemini-3-pro", "https://generativelanguage.googleapis.com/v1beta/openai", "max_tokens"),
        ("openai/gpt-5.1", "https://openrouter.ai/api/v1", "max_completion_tokens"),
        ("o4-mini", "http://127.0.0.1:1/v1", "max_completion_tokens"),
    ],
)
def test_how_the_limit_is_called(model: str, base_url: str, field: str) -> None:
    body = body_of(request(user("hi")), spec("openai-chat", model, base_url=base_url))
    assert {"max_tokens", "max_completion_tokens"} & body.keys() == {field}


def test_effort_only_where_thinking_is_asked_for() -> None:
    assert "reasoning_effort" not in body_of(request(user("hi")), LOCAL)


@pytest.mark.parametrize(
    ("model", "base_url", "efforts"),
    [
        ("gpt-5.5", "", {"off": "none", "low": "low", "x-high": "xhigh"}),
        ("o4-mini", "", {"off": None, "high": "high", "x-high": "xhigh"}),
        ("gemini-3-pro", "https://generativelanguage.googleapis.com/v1beta/openai", {"off": "none", "x-high": "high"}),
        ("deepseek-flash", "https://api.deepseek.com/v1", {"off": None, "medium": "high", "x-high": "max"}),
        ("qwen/qwen4", "https://openrouter.ai/api/v1", {"off": "none", "x-high": "xhigh"}),
        ("openai/gpt-oss-120b", "https://api.groq.com/openai/v1", {"off": None, "x-high": "high"}),
        ("qwen3:8b", "http://127.0.0.1:11434/v1", {"off": "none", "x-high": "high"}),
        ("anything", "http://127.0.0.1:8000/v1", {"off": None, "medium": "medium", "auto": None}),
    ],
)
def test_levels_of_thinking_by_server(model: str, base_url: str, efforts: dict[ThinkingLevel, str | None]) -> None:
    there = spec("openai-chat", model, base_url=base_url)
    for level, effort in efforts.items():
        assert body_of(request(user("hi"), thinking=level), there).get("reasoning_effort") == effort


def test_calls_and_results() -> None:
    given = (user("go"), assistant("I look.", call("a"), call("b", "list", "")), results(("a", "A"), ("b", " ")))
    function = {"name": "read", "arguments": '{"path": "a"}'}
    assert messages(*given) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": function},
                {"id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        {"role": "tool", "tool_call_id": "b", "content": "(no output)"},
    ]


def test_what_is_recalled_stands_at_the_end_of_the_last_line() -> None:
    recalled = Message("user", (Text("remembered"),), mark=Mark.RECALLED)
    assert messages(user("a"), recalled) == [{"role": "user", "content": "a\n\nremembered"}]
    (shown,) = messages(user("a", PNG), recalled)
    assert shown["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "remembered"}, PICTURE]
    lines = (user("a"), assistant(call("1"), call("2")), results(("1", "x"), ("2", "")))
    *before, last = messages(*lines, recalled)
    assert before == messages(*lines)[:-1]
    assert last == {"role": "tool", "tool_call_id": "2", "content": "(no output)\n\nremembered"}


def test_images_of_results_follow_all_results() -> None:
    parts = (ToolResult("a", "read", "seen", images=(PNG,)), ToolResult("b", "read", "no", is_error=True))
    given = (user("look", PNG), assistant(call("a"), call("b")), Message("tool", parts))
    made = messages(*given, assistant("done"), user("more"))
    assert made[0]["content"] == [{"type": "text", "text": "look"}, PICTURE]
    assert made[1]["content"] is None
    assert [message["role"] for message in made[2:]] == ["tool", "tool", "user", "assistant", "user"]
    assert made[3]["content"] == "Error: no"
    assert made[4]["content"][1:] == [PICTURE]
    assert messages(*given)[4] == made[4]
    blind = messages(*given, vision=False)
    assert blind[0]["content"] == "look\n\n[an image that this model cannot see]"
    assert len(blind) == 4


def test_thinking_and_empty_messages_are_not_sent() -> None:
    made = messages(user("a"), assistant(Thinking("hm", "sig")), user(" "), assistant(Thinking("x"), "b"), user("c"))
    assert [message["content"] for message in made] == ["a", "(empty message)", "b", "c"]


def test_ids_of_others_are_made_to_fit() -> None:
    long = "x" * 41
    made = messages(user("a"), assistant(call(long, "a b")), results((long, "A")))
    assert made[1]["tool_calls"][0]["id"] == made[2]["tool_call_id"] != long
    assert len(made[2]["tool_call_id"]) <= 40
    assert made[1]["tool_calls"][0]["function"]["name"] == "a_b"


def test_what_a_server_wants_back_with_a_call_goes_back_to_its_own_model() -> None:
    extra = {"google": {"thought_signature": "Cg=="}}
    piece = {"index": 0, "id": "c1", "extra_content": extra, "function": {"name": "read", "arguments": "{}"}}
    reader = ChunkReader("house/some-model", set(), lambda: "made")
    read(reader, chunks({"choices": [{"delta": {"tool_calls": [piece]}, "finish_reason": "stop"}]}, "[DONE]"))
    answer = reader.answer()
    assert answer is not None
    made = messages(user("a"), answer.message, results(("c1", "A")))
    assert made[1]["tool_calls"][0]["extra_content"] == extra
    other = messages(user("a"), answer.message, results(("c1", "A")), model="other")
    assert "extra_content" not in other[1]["tool_calls"][0]


@pytest.mark.parametrize("url", ["https://api.deepseek.com/v1", "https://api.moonshot.ai/v1"])
def test_reasoning_comes_back_with_calls_where_that_is_wanted(url: str) -> None:
    given = [
        user("a"),
        assistant(Thinking("hm"), "b"),
        user("c"),
        assistant(Thinking("so"), call("c1")),
        results(("c1", "A")),
    ]
    made = messages(*given, base_url=url)
    assert "reasoning_content" not in made[1]
    assert made[3]["reasoning_content"] == "so"
    assert messages(*given, base_url=url, model="other")[3]["reasoning_content"] == "", "another model wrote it"
    assert "reasoning_content" not in messages(*given)[3]
    there = spec("openai-chat", base_url=url)
    assert body_of(request(user("hi"), thinking="off"), there)["thinking"] == {"type": "disabled"}
    assert "thinking" not in body_of(request(user("hi")), there)
    assert "thinking" not in body_of(request(user("hi"), thinking="off"), LOCAL)
