"""Reasoning in tags and leaked markup never reach anybody, however the stream was sliced."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.bridge import Bridge, bridged
from agent.message import Part, Text, Thinking, ToolCall

REASONING = [
    ("<think>hm</think>Hello", "Hello", "hm"),
    ("<think>\n\n</think>\n\nHello", "Hello", ""),
    ("<THINKING mode='deep'>hm</Thinking >\n\nHello", "Hello", "hm"),
    ("<thought>hm</thought> Hello", "Hello", "hm"),
    ("<antThinking>hm</antThinking>Hello", "Hello", "hm"),
    ("<mm:think>hm</mm:think>Hello", "Hello", "hm"),
    ("[THINK]hm[/THINK]Hello", "Hello", "hm"),
    ("Hello<think>hm</think> there<thought>so</thought>.", "Hello there.", "hmso"),
    ("Hello\n<think>\nhm\n</think>\nthere", "Hello\nthere", "hm\n"),
    ("<think/>Hello", "Hello", ""),
    ("<think>a<think>b</think>c</think>d", "d", "abc"),
    ("<think>a<think>b</think>c</think>d<think>e</think>f", "df", "abce"),
    ("<think>I write no <think> here</think>Hello", "Hello", "I write no  here"),
    ("<think>I write no <think> here</think>Hello `<think>` there", "Hello `<think>` there", "I write no  here"),
    ("<think>I end with `</think>` then</think>Hello", "Hello", "I end with `</think>` then"),
    ("<think>never closed", "", "never closed"),
    ("Hello\n  <thinking>never closed\n\nHello", "Hello\n  ", "never closed\n\nHello"),
    ("Hello\n[THINK]never closed", "Hello\n", "never closed"),
    ("<think>a</think><think>never closed", "", "anever closed"),
    ("Use <think> so.\n<think>never closed", "Use <think> so.\n", "never closed"),
    ("Hello<|channel|>analysis<|message|>never closed", "Hello", "never closed"),
    ("<|channel|>commentary<|message|>I look.<|end|><|channel|>analysis<|message|>never", "I look.", "never"),
    ("A Map<Function> { and <think>hm</think> it", "A Map<Function> { and  it", "hm"),
    ("Say <think> and <function=a>{} ever <think>", "Say <think> and <function=a>{} ever <think>", ""),
    ("it was said</think>Hello", "it was saidHello", ""),
    ("Hello</think></thought>", "Hello", ""),
    ("<final>Hello</final>", "Hello", ""),
    ("<think>hm</think>\n<final>\nHello\n</final>", "Hello\n", "hm"),
    ("<think>hm<final>Hello</final>", "Hello", "hm"),
    ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hello<|END_RESPONSE|>", "Hello", "hm"),
    ("<|channel>thought\nhm<channel|>Hello", "Hello", "hm"),
    (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>",
        "Hello",
        "hm",
    ),
    ("<|channel|>commentary<|message|>I look.<|end|>", "I look.", ""),
]
MARKUP = [
    ('Let me see.\n<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>\nDone.', "Let me see.\nDone."),
    ("<tool_call>get_time\n<arg_key>city</arg_key><arg_value>Ulm</arg_value></tool_call>", ""),
    ("<tool_call>get_time</tool_call>Hello", "Hello"),
    ("<tool_call></tool_call>Hello", "Hello"),
    ("<tool_call>\n<function=a>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>\nHello", "Hello"),
    ("<function=a>{}</function>\n</tool_call>Hello", "Hello"),
    ('<function_calls>\n<invoke name="a">\n<parameter name="x">1</parameter>\n</invoke>\n</function_calls>', ""),
    ('<minimax:tool_call>\n<invoke name="a"><parameter name="x">1</parameter></invoke>\n</minimax:tool_call>', ""),
    ('<｜DSML｜function_calls>\n<｜DSML｜invoke name="a"></｜DSML｜invoke>\n</｜DSML｜function_calls>', ""),
    (
        "Hello<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a\n```json\n{}\n```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        "Hello",
    ),
    (
        "Hello<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>.",
        "Hello.",
    ),
    ('Hello[TOOL_CALLS][{"name": "a", "arguments": {}}]', "Hello"),
    ('[TOOL_CALLS]a[ARGS]{"x": 1}', ""),
    ("<|tool_call_start|>[a(x=1)]<|tool_call_end|>Hello", "Hello"),
    ('<|tool_call>call:a{x:<|"|>1<|"|>}<tool_call|>Hello', "Hello"),
    ('Hello<|python_tag|>{"name": "a"}<|eom_id|>', "Hello"),
    ('<|channel|>commentary to=functions.a <|constrain|>json<|message|>{"x": 1}<|call|>Hello', "Hello"),
    ('Hello\n<tool_call>{"never": "closed"', "Hello\n"),
    ('Hello <think> so <tool_call>{"name": "a"}</tool_call>', "Hello <think> so "),
    ("Hello<｜tool▁calls▁begin｜>never closed", "Hello"),
    ("Hello<|im_end|>", "Hello"),
    ("<|im_start|>assistant\nHello<|endoftext|>", "Hello"),
    ("<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>", "Hello"),
    ("<|begin▁of▁sentence｜>Hello", "Hello"),
]
TEXT = [
    "Use `<think>` and `</think>`, or ``a ` <think>`` too, not `<|im_end|>` or `[TOOL_CALLS][{`.",
    '```xml\n<think>hm</think>\n<tool_call>{"a": 1}</tool_call>\n```\nHello',
    "~~~\n<think>\n```\n</think>\n~~~~\nHello",
    "1. Do:\n\n   ```sh\n   echo '<think>'\n   ```\n> - ```\n> <think>\n> ```\n",
    "```\n<think> in a fence that is never closed",
    "The tag <think> opens the reasoning of such models.\n\nThey close it, or not.",
    "Set [THINK] where it begins, and <thinking mode='deep'> there.",
    "With <function name=read> a call begins; that is all.",
    "It is a Map<Function> { of names }.\n\nIt has three entries.",
    "Mistral writes [TOOL_CALLS][{ and a list behind it.",
    "- <think> is one of them",
    "> <think>this</think> is what they write, and <tool_call>{} as well\n\nSo it is.",
    '"<think>" opens it, “<think>hm</think>” is all of it, and \'<function name="a">{}\' a call.',
    "The <tool_call> tag, [TOOL_CALLS] and <invoke> are how models call tools.",
    "a <| b |> c, x <- [1], <br>, <thinker>, [link](u), a < b > c, ~5, 1 <2, <|>, <thin",
    "it's ` a lone tick",
]


def read(text: str, *cuts: int, after: str = "") -> tuple[str, str]:
    """Text and thinking of a stream cut at these places."""
    bridge = Bridge(after)
    places = [0, *cuts, len(text)]
    found = [piece for start, end in itertools.pairwise(places) for piece in bridge.feed(text[start:end])]
    found += bridge.end()
    assert all(words for _, words in found)
    said, thought = ("".join(words for kind, words in found if kind == wanted) for wanted in ("text", "thinking"))
    return said, thought


CASES = [
    *((text, (said, thought)) for text, said, thought in REASONING),
    *((text, (said, "")) for text, said in MARKUP),
    *((text, (text, "")) for text in TEXT),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_what_people_read_of_an_answer(text: str, expected: tuple[str, str]) -> None:
    assert read(text) == expected
    assert read(text, *range(1, len(text))) == expected
    for cut in range(1, len(text)):
        assert read(text, cut) == expected


FRAGMENTS = sorted(
    {*"`~<>[]|/ \n", "a", "word ", "```", "```py\n", "~~~\n", "- ", "> ", "\U0001f600", "assistant", "name"}
)
TAGS = [
    '"',
    "'<think>",
    "\n<think>",
    "> ",
    "<think>",
    "</think>",
    "<thinking a='b'>",
    "</thought>",
    "<think/>",
    "<final>",
    "</final>",
    "`</think>`",
    "mm:",
]
CALLS = [
    "<tool_call>",
    "</tool_call>",
    "{}",
    "<function=f>",
    "<invoke name='x'>",
    "[TOOL_CALLS]",
    "<｜tool▁calls▁begin｜>",
]
TOKENS = [
    "<|",
    "|>",
    "<|im_start|>",
    "<|channel|>",
    "analysis",
    " to=f",
    "<|message|>",
    "<|end|>",
    "<|channel>",
    "<channel|>",
]


@given(st.lists(st.sampled_from([*FRAGMENTS, *TAGS, *CALLS, *TOKENS]), max_size=14).map("".join), st.data())
def test_it_does_not_matter_how_the_stream_was_sliced(text: str, data: st.DataObject) -> None:
    whole = read(text)
    assert read(text, *range(1, len(text))) == whole
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=4).map(sorted))
    assert read(text, *cuts) == whole


@given(st.text(st.characters(exclude_characters="<[", exclude_categories=["Cs"])))
def test_a_text_without_tags_is_what_it_was(text: str) -> None:
    assert read(text, *range(1, len(text))) == (text, "")


@given(st.text(), st.integers(min_value=1, max_value=5))
def test_a_text_in_pieces_of_utf16_units_is_joined_again(text: str, size: int) -> None:
    raw = text.encode("utf-16-le")
    pieces = [raw[at : at + 2 * size].decode("utf-16-le", "surrogatepass") for at in range(0, len(raw), 2 * size)]
    bridge = Bridge()
    found = [words for piece in [*map(bridge.feed, pieces), bridge.end()] for _, words in piece]
    assert "".join(found) == read(text)[0]


def test_words_come_at_once_and_only_what_may_become_a_tag_is_held() -> None:
    bridge = Bridge()
    fed = ["Hello", " a < b", " <thi", "s> <", "think", ">hm", "</think", ">so `co", "de` x"]
    assert [bridge.feed(delta) for delta in fed] == [
        [("text", "Hello")],
        [("text", " a < b")],
        [("text", " ")],
        [("text", "<this> ")],
        [],
        [],
        [],
        [("thinking", "hm"), ("text", "so ")],
        [("text", "`code` x")],
    ]
    assert bridge.end() == []


def test_reasoning_that_begins_a_line_is_told_at_once() -> None:
    bridge = Bridge()
    assert [bridge.feed(delta) for delta in ("<think>", "hm", " so")] == [
        [],
        [("thinking", "hm")],
        [("thinking", " so")],
    ]


def test_a_cut_answer_goes_on_in_the_fence_that_was_open() -> None:
    assert read("<think>\n```\n<think>b</think>", after="See:\n```xml\n") == ("<think>\n```\n", "b")
    assert read("<think>hm</think>\nb", after="See:\n") == ("b", "hm")
    assert read(" is a tag", after="So <think>") == (" is a tag", "")
    assert read("d <think>never closed", after="So <think> en") == ("d <think>never closed", "")


def test_what_is_stored_is_what_was_streamed() -> None:
    call = ToolCall("a", "read", "{}")
    given: list[Part] = [Thinking("hm", "signed"), Text("One <thi"), Text("nk>so</think>two `"), call, Text("<final>")]
    assert list(bridged(given)) == [
        Thinking("hm", "signed"),
        Text("One "),
        Thinking("so"),
        Text("two "),
        call,
        Text("`"),
    ]


@pytest.mark.parametrize(
    "piece", ["a <think> ", "a <function=b> ", "a <think> <function=b>\n", "> <think>", "<think>x\n"]
)
def test_tags_without_an_end_take_no_time(piece: str) -> None:
    said, thought = read(piece * 20_000)
    assert len(said) + len(thought) >= 40_000


@pytest.mark.parametrize("piece", ["<", "[", "`a``b```c ", "```\n", "<think ", "[TOOL_CALLS], ", "<|", "~"])
def test_what_is_held_is_bounded_so_that_the_work_is_linear(piece: str) -> None:
    bridge, said = Bridge(), 0
    for count in range(1, 2001):
        said += sum(len(words) for _, words in bridge.feed(piece))
        assert count * len(piece) - said <= 1000
