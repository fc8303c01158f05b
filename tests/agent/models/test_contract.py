"""What every provider's requests and readers must keep to. See `tests/wire/test_model_clients.py` for whole clients."""

import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.errors import ErrorKind, ModelError
from agent.message import Message, Thinking, ToolResult, Usage
from agent.models import anthropic, build, openai_chat, openai_responses
from agent.models.base import Alive, ArgumentsDelta, ModelApi, ModelRequest, ModelSpec, StreamPart, TextDelta
from agent.models.price import Price
from agent.models.sdk import Decoder, Event
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


# Clients from specifications: what is imported when, and what is not shown.


@pytest.mark.parametrize("api", ["anthropic", "openai-chat", "openai-responses", "offline"])
async def test_a_client_has_what_the_specification_says(api: ModelApi) -> None:
    client = build(spec(api, context_window=1000, max_output=100, thinks=True, api_keys=("secret-key",)))
    assert (client.name, client.context_window, client.max_output) == ("house/some-model", 1000, 100)
    assert client.thinks
    await client.close()


def test_building_imports_no_sdk() -> None:
    code = (
        "import sys\n"
        "from agent.models import build\n"
        "from agent.models.base import ModelSpec\n"
        "for api in ('anthropic', 'openai-chat', 'openai-responses', 'offline'):\n"
        "    build(ModelSpec(provider='p', api=api, model='m'))\n"
        "print(sorted({'anthropic', 'openai', 'httpx2', 'pydantic'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_specification_does_not_show_its_keys() -> None:
    assert "secret-key" not in repr(spec("anthropic", api_keys=("secret-key",)))


# What tokens cost.

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("price", "usage", "dollars"),
    [
        (Price(input=3, output=15), Usage(), 0),
        (Price(input=3, output=15), Usage(MILLION, MILLION), 18),
        (Price(input=3, output=15), Usage(1000, 200), 0.006),
        # Usage counts tokens of a cache as input too; they are paid once.
        (Price(input=3, output=15), Usage(MILLION, 0, 400_000, 100_000), 3),
        (Price(input=3, output=15, cache_read=0.3), Usage(MILLION, 0, MILLION), 0.3),
        (Price(input=3, output=15, cache_write=3.75), Usage(MILLION, 0, 0, MILLION), 3.75),
        (Price(input=3, output=15, cache_read=0.3, cache_write=3.75), Usage(MILLION, 0, 400_000, 100_000), 1.995),
        (Price(input=3, output=15, cache_read=0, cache_write=0), Usage(MILLION, 0, 400_000, 100_000), 1.5),
        (Price(input=0, output=0), Usage(MILLION, MILLION, 5, 5), 0),
    ],
)
def test_the_cost_of_tokens(price: Price, usage: Usage, dollars: float) -> None:
    assert price.cost(usage) == pytest.approx(dollars)


def test_the_cost_of_a_sum_is_the_sum_of_costs() -> None:
    price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    one, two = Usage(5000, 70, 4000, 600), Usage(900, 11)
    assert price.cost(one + two) == pytest.approx(price.cost(one) + price.cost(two))


@pytest.mark.parametrize("wrong", [-1, True, "3", float("inf"), float("nan")])
def test_a_price_is_a_number_that_is_not_less_than_nothing(wrong: object) -> None:
    with pytest.raises(ValidationError):
        Price.model_validate({"input": wrong, "output": 1})


# The decoder of server-sent events.


def decoded(body: bytes, size: int) -> list[Event]:
    decoder = Decoder()
    found = [event for at in range(0, len(body), size) for event in decoder.feed(body[at : at + size])]
    return found + decoder.end()


BODY = (
    b": a comment\n\nevent: ping\ndata: {}\n\nid: 7\nretry: 10\ndata:one\ndata: two\n\n"
    b"event: nothing\n\ndata: \xe2\x9c\x93 caf\xc3\xa9\n\ndata\n\n"
)
EVENTS: list[Event] = [("ping", "{}"), ("", "one\ntwo"), ("", "✓ café"), ("", "")]


def test_fields_comments_and_events_without_data() -> None:
    assert decoded(BODY, 4096) == EVENTS


def test_any_slice_size_and_line_end_gives_the_same_events() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        for size in (1, 2, 7, 4096):
            assert decoded(BODY.replace(b"\n", end), size) == EVENTS, (end, size)


def test_a_byte_order_mark_at_the_start_is_no_part_of_a_field() -> None:
    for size in (1, 2, 7, 4096):
        assert decoded(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", size) == [("", "a")]


def test_an_event_without_its_blank_line_is_not_lost() -> None:
    assert decoded(b"data: a\n\ndata: b", 3) == [("", "a"), ("", "b")]
    assert decoded(b"data: a\n\ndata: b\r", 3) == [("", "a"), ("", "b")]


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\n") == [("", "a")]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.integers(1, 9))
def test_what_goes_in_comes_out(texts: list[str], size: int) -> None:
    body = "".join(f"event: e\r\ndata: {text}\r\n\r\n" for text in texts).encode()
    assert decoded(body, size) == [("e", text) for text in texts]
