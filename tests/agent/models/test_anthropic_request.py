"""What is sent to Anthropic."""

from dataclasses import replace
from typing import Any

import pytest

from agent.message import Message, Thinking, ToolResult
from agent.models.anthropic import Client, body_of
from agent.models.base import ThinkingLevel
from tests.agent.models.makers import (
    PNG,
    assistant,
    call,
    request,
    results,
    spec,
    unmarked,
    user,
)

SPEC = spec("anthropic")
CACHE = {"cache_control": {"type": "ephemeral"}}


def messages(*given: Message, **options: Any) -> Any:
    return unmarked(body_of(request(*given), spec("anthropic", **options)))["messages"]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_a_whole_request() -> None:
    body = body_of(request(user("hi"), system="Be kind."), spec("anthropic", params=(("top_k", 5),)))
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert body == {
        "model": "some-model",
        "max_tokens": 4096,
        "stream": True,
        "top_k": 5,
        "tools": [
            {"name": "read", "description": "Read a file.", "input_schema": schema},
            {"name": "write", "description": "Write a file.", "input_schema": schema, **CACHE},
        ],
        "system": [{**text("Be kind."), **CACHE}],
        "messages": [{"role": "user", "content": [{**text("hi"), **CACHE}]}],
    }
    assert list(body)[-1] == "messages"
    bare = body_of(request(user("hi"), tools=(), system=""), SPEC)
    assert not {"tools", "system", "tool_choice"} & bare.keys()


def test_calls_forbidden_keeps_the_tools() -> None:
    body = body_of(request(user("hi"), allow_calls=False), SPEC)
    assert (body["tool_choice"], len(body["tools"])) == ({"type": "none"}, 2)  # type: ignore[arg-type]
    assert "tool_choice" not in body_of(request(user("hi"), allow_calls=False, tools=()), SPEC)


def test_results_come_first_and_in_the_order_of_the_calls() -> None:
    found = messages(
        user("go"), assistant("I look.", call("b"), call("a")), results(("a", "A")), user("wait"), results(("b", "B"))
    )
    assert [block.get("tool_use_id") or block["text"] for block in found[2]["content"]] == ["b", "a", "wait"]
    assert [message["role"] for message in found] == ["user", "assistant", "user"]
    assert found[2]["content"][0] == {"type": "tool_result", "tool_use_id": "b", "content": [text("B")]}


def test_results_with_errors_images_and_nothing() -> None:
    parts = (
        ToolResult("a", "read", "no", is_error=True),
        ToolResult("b", "read", "seen", images=(PNG,)),
        ToolResult("c", "read", " \n"),
    )
    given = (user("go"), assistant(call("a"), call("b"), call("c")), Message("tool", parts))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG.data}}
    first, second, third = messages(*given)[2]["content"]
    assert first == {"type": "tool_result", "tool_use_id": "a", "content": [text("no")], "is_error": True}
    assert second["content"] == [text("seen"), image]
    assert third == {"type": "tool_result", "tool_use_id": "c"}
    blind = messages(*given, user(PNG), vision=False)
    assert "image" not in [block["type"] for message in blind for block in message["content"]]
    assert blind[2]["content"][1]["content"] == [text("seen\n[an image that this model cannot see]")]


def test_blank_text_is_never_sent() -> None:
    assert messages(user(" "), assistant(""), user("", "hi")) == [
        {"role": "user", "content": [text("(empty message)"), text("hi")]}
    ]


def test_ids_names_and_arguments_of_others_are_made_to_fit() -> None:
    given = (user("go"), assistant(call("call.1/x", "my tool", "{bad")), results(("call.1/x", "A")))
    made = messages(*given)
    use, result = made[1]["content"][0], made[2]["content"][0]
    assert (use["name"], use["input"]) == ("my_tool", {"malformed_arguments": "{bad"})
    assert use["id"] == result["tool_use_id"]
    assert use["id"].isidentifier()
    for arguments in ("[1]", '{"a": NaN}', "[" * 100_000):
        assert messages(user("go"), assistant(call("a", "read", arguments)), results(("a", "")))[1]["content"][0][
            "input"
        ] == {"malformed_arguments": arguments}


def test_thinking_goes_back_to_its_own_model_only() -> None:
    thought = (Thinking("hm", "sig"), Thinking("", redacted="data"), Thinking("unsigned"))
    given = (user("go"), assistant(*thought, "done"), user("more"))
    own = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "data"},
        text("done"),
    ]
    assert messages(*given)[1]["content"] == own
    other = assistant(*thought, "done", model="house/other-model")
    assert messages(user("go"), other, user("more"))[1]["content"] == [text("done")]


def test_a_message_never_ends_with_thinking() -> None:
    assert [message["role"] for message in messages(user("a"), assistant(Thinking("hm", "sig")), user("b"))] == ["user"]


@pytest.mark.parametrize(
    ("model", "level", "fields"),
    [
        ("claude-opus-5-5", "off", {}),
        ("claude-opus-5-5", "x-high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
        ("claude-sonnet-4-6", "low", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("claude-opus-4-7", "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("claude-haiku-4-5", "medium", {"thinking": {"type": "enabled", "budget_tokens": 8192}, "max_tokens": 12288}),
        (
            "claude-sonnet-4-5-20250929",
            "low",
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 5120},
        ),
        ("claude-opus-4-20250514", "low", {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 5120}),
        ("claude-opus-4-1", "low", {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 5120}),
        ("claude-haiku-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 32768}, "max_tokens": 36864}),
        ("claude-haiku-4-5", "x-high", {"thinking": {"type": "enabled", "budget_tokens": 59904}, "max_tokens": 64000}),
        ("claude-opus-4-1", "x-high", {"thinking": {"type": "enabled", "budget_tokens": 27904}, "max_tokens": 32000}),
        (
            "claude-3-7-sonnet-20250219",
            "low",
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 5120},
        ),
    ],
)
def test_thinking_levels(model: str, level: ThinkingLevel, fields: dict[str, object]) -> None:
    params = (("temperature", 0.5),)
    body = body_of(request(user("hi"), thinking=level), spec("anthropic", model, params=params))
    limit = body.pop("max_tokens")
    found = {key: value for key, value in body.items() if key in ("thinking", "output_config")}
    assert found == {key: value for key, value in fields.items() if key != "max_tokens"}
    assert limit == fields.get("max_tokens", 4096), "what thinking takes does not come out of the words"
    assert ("temperature" in body) == (not fields)


def test_a_budget_needs_room_and_a_turn_that_began_with_thinking() -> None:
    old = spec("anthropic", "claude-haiku-4-5")
    own = {"model": old.name}
    asked = (user("go"), assistant(call("a"), **own), results(("a", "A")))
    thought = (user("go"), assistant(Thinking("hm", "sig"), call("a"), **own), results(("a", "A")))
    later = (*thought, assistant(call("b"), **own), results(("b", "B")))
    small = spec("anthropic", "claude-haiku-4-5", context_window=4000)
    assert "thinking" not in body_of(request(user("hi"), thinking="high", max_output=2000), small)
    assert "thinking" not in body_of(request(*asked, thinking="high"), old)
    assert "thinking" in body_of(request(*thought, thinking="high"), old)
    assert "thinking" in body_of(request(*later, thinking="high"), old)
    assert "thinking" in body_of(request(*asked, assistant("done", **own), user("more"), thinking="high"), old)


@pytest.mark.parametrize(
    ("model", "window", "output", "wanted", "level", "limit"),
    [
        ("claude-haiku-4-5", 200_000, 4096, "high", "high", 36_864),
        ("claude-haiku-4-5", 200_000, 32_000, "high", "high", 64_000),  # of 32,768 all but little
        ("claude-haiku-4-5", 200_000, 32_000, "x-high", "x-high", 64_000),
        ("claude-opus-4-1", 200_000, 32_000, "high", "high", 32_000),  # more than medium
        ("claude-haiku-4-5", 24_000, 4096, "high", "medium", 12_000),  # no more than medium fits
        ("claude-haiku-4-5", 10_240, 4096, "high", "low", 5120),
        ("claude-haiku-4-5", 10_238, 4096, "high", "auto", 4096),
        ("claude-haiku-4-5", 10_238, 4096, "x-high", "auto", 4096),
        ("claude-haiku-4-5", 200_000, 4096, "off", "off", 4096),
        ("claude-opus-5-5", 10_000, 8000, "high", "high", 8000),  # it has no budget
    ],
)
def test_what_fits_is_the_level(
    model: str, window: int, output: int, wanted: ThinkingLevel, level: ThinkingLevel, limit: int
) -> None:
    made = spec("anthropic", model, context_window=window, max_output=output, thinks=True)
    client = Client(made)
    assert (client.level_for(wanted), client.output_limit(wanted)) == (level, limit)
    body = body_of(request(user("hi"), max_output=output, thinking=client.level_for(wanted)), made)
    assert body["max_tokens"] == limit, "the limit that is reserved is the one that is sent"
    assert Client(replace(made, thinks=False)).level_for(wanted) == "auto"


def marks(body: Any) -> list[tuple[str, int]]:
    found = [("tools", place) for place, tool in enumerate(body["tools"]) if "cache_control" in tool]
    found += [("system", place) for place, block in enumerate(body["system"]) if "cache_control" in block]
    for place, message in enumerate(body["messages"]):
        found += [("messages", place) for block in message["content"] if "cache_control" in block]
    return found


TALK = (
    user("[Sat 2026-11-21 07:30 UTC]\nfirst", PNG),
    assistant(Thinking("hm", "sig"), "I look.", call("a"), call("b", "write", '{"path": "ü", "x": 1.50}')),
    results(("a", "A"), ("b", "B")),
    assistant("Cut in the mid"),
    user("Your reply was cut off."),
    assistant("dle."),
    user("second", "and third"),
)


def test_each_request_is_marked_where_the_one_before_ended() -> None:
    ends = [index for index, message in enumerate(TALK, 1) if message.role != "assistant"]
    bodies = [body_of(request(*TALK[:end]), SPEC) for end in ends]

    assert len(bodies) == 4
    assert [marks(body)[2:] for body in bodies] == [
        [("messages", 0)],
        [("messages", 0), ("messages", 2)],
        [("messages", 2), ("messages", 4)],
        [("messages", 4), ("messages", 6)],
    ]
    assert all(marks(body)[:2] == [("tools", 1), ("system", 0)] for body in bodies)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-1", "claude-opus-5-5", "claude-haiku-4-5"])
@pytest.mark.parametrize("level", ["auto", "off", "low", "medium", "high", "x-high"])
def test_the_most_output_is_what_the_request_allows(model: str, level: ThinkingLevel) -> None:
    made = request(user("hi"), thinking=level)
    there = spec("anthropic", model, max_output=made.max_output, thinks=True)
    assert Client(there).output_limit(level) == body_of(made, there)["max_tokens"]
