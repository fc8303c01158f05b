"""What every provider's requests and readers must keep to. See `tests/wire/test_model_clients.py` for whole clients."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Message, Thinking, ToolResult
from agent.models import anthropic, openai_chat, openai_responses
from agent.models.base import Alive, ArgumentsDelta, ModelApi, ModelRequest, ModelSpec, StreamPart, TextDelta
from tests.agent.models.makers import PNG, assistant, call, prefixes, raw, read, request, results, spec, user
from tests.agent.models.test_odd_streams import BODIES, READERS

BODY_OF: dict[ModelApi, Callable[[ModelRequest, ModelSpec], dict[str, object]]] = {
    "anthropic": anthropic.body_of,
    "openai-chat": openai_chat.body_of,
    "openai-responses": openai_responses.body_of,
}
TALK = (
    user("[Sat 2026-11-21 07:30 UTC]\nfirst", PNG),
    assistant(Thinking("hm", "sig"), "I look.", call("a"), call("b", "write", '{"path": "ü", "x": 1.50}')),
    results(("a", "A"), ("b", "B")),
    assistant(call("c")),
    Message("tool", (ToolResult("c", "read", "A", images=(PNG,)),)),
    assistant("Cut in the mid"),
    user("Your reply was cut off."),
    assistant("dle."),
    user("second", "and third"),
)


@pytest.mark.parametrize("api", BODY_OF)
def test_a_longer_request_begins_with_the_bytes_of_a_shorter_one(api: ModelApi) -> None:
    ends = [index for index, message in enumerate(TALK, 1) if message.role != "assistant"]
    prefixes([BODY_OF[api](request(*TALK[:end]), spec(api)) for end in ends])


@pytest.mark.parametrize("api", BODY_OF)
def test_forbidding_calls_keeps_the_prefix(api: ModelApi) -> None:
    prefixes([BODY_OF[api](request(*TALK[:3]), spec(api)), BODY_OF[api](request(*TALK, allow_calls=False), spec(api))])


@pytest.mark.parametrize("api", BODY_OF)
def test_rendering_is_repeatable_and_leaves_the_request_alone(api: ModelApi) -> None:
    asked = request(*TALK)
    before = deepcopy(asked)
    first = raw(BODY_OF[api](asked, spec(api)))
    assert raw(BODY_OF[api](asked, spec(api))) == first
    assert asked == before


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_what_is_shown_is_what_the_answer_holds_however_it_is_sliced(name: str, size: int) -> None:
    reader = READERS[name]()
    parts: list[StreamPart] = [part for part in read(reader, BODIES[name], size) if not isinstance(part, Alive)]
    answer = reader.answer()
    assert answer is not None
    assert answer.stop_reason == "tool_use"
    assert answer.message.text == "".join(part.text for part in parts if isinstance(part, TextDelta))
    shown = {part.call_id: part.name for part in parts if isinstance(part, ArgumentsDelta)}
    assert shown == {made.call_id: made.name for made in answer.message.tool_calls}
    assert [part.type for part in answer.message.parts][-2:] == ["tool_call", "tool_call"]


@pytest.mark.parametrize("name", READERS)
def test_half_an_event_is_a_broken_connection(name: str) -> None:
    body = BODIES[name]
    reader = READERS[name]()
    with pytest.raises(ModelError) as raised:
        read(reader, body[: body.index(b"data: {", body.index(b"\n\n")) + 9])
    assert raised.value.kind is ErrorKind.NETWORK
    assert reader.answer() is None
