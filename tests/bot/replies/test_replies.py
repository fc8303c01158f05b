"""From the model's words to blocks in the ledger: whole, in order, and the same however the stream was cut."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.events import RunRef
from agent.journal import Step
from agent.message import Text
from bot.persistence.turns import Said
from bot.replies.beat_words import BeatWords
from bot.replies.cutting import Replies
from bot.replies.directives import Directives
from bot.replies.repeats import is_repeat, may_become
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Planned
from channels.settings import Beats, ReplyTo, Streaming
from channels.sources import answer, tool_message
from channels.telegram.render import bodies
from tests.bot.pairs import pairs
from tests.bot.store.opened import a_turn, whole
from tests.service import Json, RecordingChannel, running
from tests.standins.script import Break, Continuer, Say, remainder
from tests.watch import Watch

SMALL = Streaming(min_chars=1, max_chars=64)
MARKDOWN = """\
Here is *everything* you asked for, in a row of paragraphs.

1. The first point, which is long enough to need a line of its own.
2. The second one.

```python
def answer() -> int:
    return 42  # the answer to everything, and more than fits into one block

print(answer())
```

> A quote at the end. It has two sentences! Or three?

The end 🏁👩‍👩‍👧‍👦.
"""


def replies(
    cutting: Streaming, channel: RecordingChannel | None = None, replying: ReplyTo = "off", spoken: bool = False
) -> Replies:
    place = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)
    question = InboundMessage(
        origin=Origin(place=place, message_id="7"), event_key="m:1:7", kind=InboundKind.MESSAGE, text="?", sent_at=0
    )
    said = (Said(source=answer("t", 1, 0), text="x", step=1),) if spoken else ()
    turn = a_turn("t", transcript_id="t", messages=(question,), conv_id=1, place=place, said=said)
    return Replies(turn, channel, cutting, replying, iter(range(10**6)).__next__)


def stream(made: Replies, step: int, after: str, deltas: Sequence[str], *, whole: bool = True) -> list[Planned]:
    """What one answer plans; not whole: the stream breaks behind its last delta."""
    made.begin(step, after)
    planned = [block for delta in deltas for block in made.feed(delta)]
    return [*planned, *made.end()] if whole else planned


def said(planned: Sequence[Planned]) -> str:
    return "".join(block.said for block in planned)


def visible(text: str) -> str:
    """What remains when a text was cut into messages: no white space, no fences or items that were opened again."""
    return "".join(re.sub(r"```(?:python)?|(?:[-*+]|\d+[.)]) <!---->", "", text).split())


@given(st.text(st.sampled_from("ab \n`~#*👩🏽.-1"), max_size=400), st.integers(1, 7))
@example(MARKDOWN, 3)
def test_what_is_planned_is_what_was_said(text: str, size: int) -> None:
    deltas = [text[n : n + size] for n in range(0, len(text), size)]
    planned = stream(replies(SMALL), 1, "", deltas)
    joined = said(planned)
    assert text.startswith(joined)
    assert not visible(text[len(joined) :].replace("~~~", ""))
    assert [block.source.key for block in planned] == [f"turn:t:s1:b{n}" for n in range(len(planned))]


def test_an_answer_that_is_cut_anywhere_and_goes_on_is_the_whole_answer() -> None:
    """What was planned stands; what was streamed beyond it never existed; the rest joins it without a seam."""
    for cut in range(len(MARKDOWN) + 1):
        made = replies(SMALL)
        first = stream(made, 1, "", MARKDOWN[:cut], whole=False)
        rest = remainder(MARKDOWN, [said(first)])
        assert rest is not None, f"cut at {cut}: {said(first)!r} is not the beginning"
        second = stream(made, 2 if first else 1, said(first), rest)
        bodies = [block.body for block in (*first, *second)]
        assert visible("".join(bodies)) == visible(MARKDOWN), f"cut at {cut}"
        assert all(body.count("```") % 2 == 0 for body in bodies), f"cut at {cut}: a fence is open"
        assert len({(block.source, block.piece) for block in (*first, *second)}) == len(bodies)


@given(
    st.text(st.sampled_from("ab \n`~#*👩🏽.-1"), max_size=300),
    st.lists(st.integers(0, 300), max_size=3),
    st.integers(1, 6),
)
def test_an_answer_that_is_cut_several_times_is_the_whole_answer(text: str, cuts: list[int], size: int) -> None:
    made = replies(SMALL)
    planned: list[Planned] = []
    step = 1
    for cut in [*cuts, len(text)]:
        rest = text[len(said(planned)) :]
        deltas = [rest[n : n + size] for n in range(0, len(rest), size)]
        whole = cut >= len(text)
        more = stream(made, step, said(planned), deltas if whole else deltas[:cut], whole=whole)
        planned += more
        step += bool(more)
        if whole:
            break
    missing = text[len(said(planned)) :]
    assert text.startswith(said(planned))
    assert not missing.strip(" \n`~")
    assert len({(block.source, block.piece) for block in planned}) == len(planned)


async def test_a_stream_that_breaks_at_any_delta_is_delivered_whole(tmp_path: Path) -> None:
    config: Json = {"channels": {"telegram": {"streaming": {"min_chars": 1, "max_chars": 64}}}}
    async with running(tmp_path, config=config) as hark:
        for number, cut in enumerate(range(0, len(Say(MARKDOWN).pieces()), 4), 1):
            person = str(100 + cut)
            hark.model.default = Continuer(MARKDOWN, "everything, please", cuts=[cut])
            reply = await hark.say("everything, please", sender=person)
            assert visible("".join(reply.texts)) == visible(MARKDOWN), f"cut after {cut}"
            kept = hark.stored.deliveries("said", chat=person)
            assert visible("".join(text for (text,) in kept)) == visible(MARKDOWN), f"cut after {cut}"
            assert len(hark.model.requests) == 2 * number


async def test_nothing_goes_out_before_an_answer_is_whole_where_that_is_wanted(tmp_path: Path) -> None:
    streaming = {"min_chars": 1, "max_chars": 64, "break": "message_end"}
    async with running(tmp_path, config={"channels": {"telegram": {"streaming": streaming}}}) as hark:
        reply = await hark.say("everything, please", answers=[(Say(MARKDOWN), Break()), "A short answer."])
        assert reply.texts == ["A short answer."]
        reply = await hark.say("everything, please", answers=[Say(MARKDOWN)])
        assert len(reply.texts) > 3
        assert visible("".join(reply.texts)) == visible(MARKDOWN)


def test_a_block_that_needs_several_messages_says_its_words_once() -> None:
    channel = RecordingChannel(Watch())
    channel.rendered = lambda text: text.split(" ")
    planned = stream(replies(Streaming(), channel), 3, "", ["one two three"])
    assert [(block.source, block.piece, block.body, block.said, block.step) for block in planned] == [
        (answer("t", 3, 0), 0, "one", "one two three", 3),
        (answer("t", 3, 0), 1, "two", "", 3),
        (answer("t", 3, 0), 2, "three", "", 3),
    ]
    assert len({block.nonce for block in planned}) == 3


def test_words_that_show_nothing_are_said_with_the_next_block() -> None:
    channel = RecordingChannel(Watch())
    channel.rendered = lambda text: () if text.startswith("[link]:") else (text,)
    planned = stream(replies(SMALL, channel), 1, "", ["[link]: http://example.org\n\nSee the link above.\n\n", "Bye."])
    assert [block.body for block in planned] == ["See the link above.", "Bye."]
    assert said(planned) == "[link]: http://example.org\n\nSee the link above.\n\nBye."


@pytest.mark.parametrize("size", [1, 7, 50, 5000])
def test_links_find_an_address_that_stands_in_a_later_block(size: int) -> None:
    channel = RecordingChannel(Watch())
    channel.rendered = bodies
    paragraphs = "\n\n".join(f"Paragraph {n}: {'it goes on and on. ' * 9}" for n in range(4))
    text = (
        f"See [the page][1], [Hark][] and a[i][j], not [this][none].\n\n{paragraphs}\n\n[1]: https://example.org/one"
        "\n[two]: https://example.org/two\n[hark]: https://example.org/hark\n\nThat is [all][1].\n"
    )
    planned = stream(
        replies(Streaming(min_chars=50, max_chars=300), channel),
        1,
        "",
        [text[at : at + size] for at in range(0, len(text), size)],
    )
    shown = [json.loads(block.body) for block in planned]
    assert shown[0]["text"] == "See the page, Hark and a[i][j], not [this][none]."
    links = [[one["url"] for one in body.get("entities", ())] for body in shown]
    assert (links[0], links[-1]) == (
        ["https://example.org/one", "https://example.org/hark"],
        ["https://example.org/one"],
    )
    words = "".join(body["text"] for body in shown)
    assert "https://example.org/two" in words
    assert "https://example.org/one" not in words
    assert said(planned).split() == text.split()


def test_blocks_keep_to_the_limit_of_the_channel() -> None:
    channel = RecordingChannel(Watch(), block_chars=100)
    planned = stream(replies(Streaming(), channel), 1, "", ["word " * 300])
    assert all(len(block.body) <= 100 for block in planned)
    assert len(planned) >= 15


def test_only_the_first_message_of_an_answer_makes_a_sound() -> None:
    made = replies(SMALL)
    first, *others = [*stream(made, 1, "", [MARKDOWN]), *stream(made, 2, "", ["And more."])]
    assert not first.silent
    assert others
    assert all(block.silent for block in others)


def test_what_goes_on_after_a_restart_makes_no_sound() -> None:
    assert all(block.silent for block in stream(replies(SMALL, spoken=True), 2, "", [MARKDOWN]))


@pytest.mark.parametrize(("replying", "shown"), [("off", []), ("first", [0]), ("all", [0, 1, 2])])
def test_which_messages_are_shown_as_replies(replying: ReplyTo, shown: list[int]) -> None:
    made = replies(SMALL, replying=replying)
    blocks = [block for step in (1, 2, 3) for block in stream(made, step, "", ["Words."])]
    assert [number for number, block in enumerate(blocks) if block.reply_to == "7"] == shown


# What a model writes for the service: taken out of the words, the same however the stream was cut.


def read(text: str, cuts: list[int], after: str = "") -> tuple[str, str | None, tuple[str, ...], str]:
    """What people see, the chosen message, the files, and what was written where all of that is."""
    made = Directives(after)
    shown, at = [], 0
    for cut in cuts:
        shown.append(made.feed(text[at : at + cut]))
        at += cut
    shown += [made.feed(text[at:]), made.end()]
    return "".join(shown), made.reply_to, tuple(made.files), made.written("".join(shown) + "|").removesuffix("|")


CASES = [
    ("NO_REPLY", "", None, ()),
    (" no_reply\n", "", None, ()),
    ("**NO_REPLY**", "", None, ()),
    ("`NO_REPLY`.", "", None, ()),
    ('{"action": "NO_REPLY"}', "", None, ()),
    ('```json\n{"action": "NO_REPLY"}\n```', "", None, ()),
    ("HEARTBEAT_OK", "", None, ()),
    ("No", "No", None, ()),
    ("no_reply_needed is a flag", "no_reply_needed is a flag", None, ()),
    ("NO_REPLY\n\nThe weather is fine.", "The weather is fine.", None, ()),
    ("The weather is fine.\n\nNO_REPLY", "The weather is fine.", None, ()),
    ("All is well. **HEARTBEAT_OK**", "All is well.", None, ()),
    ("Answer NO_REPLY when nothing is to say.", "Answer NO_REPLY when nothing is to say.", None, ()),
    ("Say no_reply", "Say no_reply", None, ()),
    ('{"action": "go"}', '{"action": "go"}', None, ()),
    ("[[reply_to_current]] Yes.", "Yes.", "", ()),
    ("Yes, [[ reply_to: 42 ]]of course.", "Yes, of course.", "42", ()),
    ("`[[reply_to_current]]` is a tag.", "`[[reply_to_current]]` is a tag.", None, ()),
    ("Put `a [[reply_to_current]] b` there.", "Put `a [[reply_to_current]] b` there.", None, ()),
    ("`a`, `b [[reply_to:7]] c`\n[[reply_to:8]]d", "`a`, `b [[reply_to:7]] c`\nd", "8", ()),
    ('Put "[[reply_to_current]]" there.', 'Put "[[reply_to_current]]" there.', None, ()),
    ("Set it to `NO_REPLY`", "Set it to `NO_REPLY`", None, ()),
    ("Use:\n```\nNO_REPLY\n```", "Use:\n```\nNO_REPLY\n```", None, ()),
    ("a [[link]] b [", "a [[link]] b [", None, ()),
    ("See:\nMEDIA: plots/a b.png\nDone.", "See:\nDone.", None, ("plots/a b.png",)),
    ("MEDIA:`x.png`", "", None, ("x.png",)),
    ("MEDIA: https://example.org/x.png", "MEDIA: https://example.org/x.png", None, ()),
    ("Not MEDIA: x.png here", "Not MEDIA: x.png here", None, ()),
    ("```\nMEDIA: x\n[[reply_to_current]]\n```\nMEDIA: y", "```\nMEDIA: x\n[[reply_to_current]]\n```\n", None, ("y",)),
]


@pytest.mark.parametrize(("text", "shown", "reply_to", "files"), CASES)
def test_every_cut_gives_the_same(text: str, shown: str, reply_to: str | None, files: tuple[str, ...]) -> None:
    for size in (1, 2, 3, 5, len(text)):
        assert read(text, [size] * (len(text) // size)) == (shown, reply_to, files, text)


def test_a_token_is_only_a_sign_where_an_answer_begins() -> None:
    assert read("NO_REPLY and so on", [], after="What stands there: ")[0] == "NO_REPLY and so on"


@given(
    st.text(st.sampled_from("NO_REPLY [[]]reply_to:current MEDIA\n`~x *"), max_size=60),
    st.lists(st.integers(1, 9), max_size=40),
)
def test_any_text_in_any_cut(text: str, cuts: list[int]) -> None:
    whole = read(text, [])
    assert read(text, cuts) == whole
    assert whole[3] == text


# When words say again what has been said, and when they only look so.

LONG = "The backup of all three servers has finished without errors, and every file was checked against its sum twice."


@pytest.mark.parametrize(
    ("text", "earlier", "repeats"),
    [
        ("Done.", " Done.\n", True),
        ("**Done!** See __the log__ of `hark`.", "Done! See the log of hark.", True),
        ("# Report\n\n- one\n- **two**\n> three", "Report\none two\nthree", True),
        (f"Hi! {LONG}\n\nLet me know if you need anything else!", LONG, True),
        (f"{LONG} Viele Grüße", f"Guten Tag,\n{LONG}", True),
        ("你好！服务器已经停机。", "服务器已经停机。", True),
        ("**run `a_b` and _look_**", "run a_b and look", True),
        ("```\nx = 1\n```", "x = 1", True),
        (LONG, LONG.upper(), False),
        (LONG, f"{LONG} 🎉", False),
        (LONG, LONG.replace("finished", "ended", 1), False),
        (LONG, f"{LONG} And there is a second part that nobody has said so far.", False),
        ("I am done, and here is the rest.", "I am done", False),
        ("Deployed: 3 services are up.", "Deployed; 3 services are up!", False),
        ("Hi Anna, it is done.", "Hi Peter, it is done.", False),
        ("Hi there is done.", "there is done.", False),
        ("See [the log](https://x.org/1)", "See [the log](https://x.org/2)", False),
        ("- 5 °C in the cellar", "5 °C in the cellar", False),
        ("> 90 in the cellar", "90 in the cellar", False),
        ("Take *.txt along", "Take .txt along", False),
        ("Run `*a*`", "Run a", False),
        ("It is ~~up~~ down.", "It is up down.", False),
        ("1. it", "2. it", False),
        ("Passed.", "Failed.", False),
        ("", "", False),
        ("Hello!", "Hi!", False),
        ("Hello!", "**Hello!**", True),
        ("🎉", "🙂", False),
    ],
)
def test_repeats(text: str, earlier: str, repeats: bool) -> None:
    assert is_repeat(text, earlier) is repeats
    assert is_repeat(earlier, text) is repeats
    if repeats:
        assert all(may_become(text[:size], earlier) for size in range(len(text) + 1))


def test_a_sentence_that_differs_in_a_word_that_matters_is_shown() -> None:
    """As an reply behind a message of a tool, as the second reply of a turn, and its blocks each by itself."""
    found = list(pairs())
    assert len(found) // 2 >= 200
    for said, reply in found:
        made = replies(Streaming())
        made.sent(Said(source=tool_message("t", "c"), text=said, step=None))
        shown = [*stream(made, 1, "", [said[:9], said[9:]]), *stream(made, 2, "", [reply[:9], reply[9:]])]
        assert [(block.body, bool(block.unless)) for block in shown] == [(said, True), (reply, False)]


async def test_an_alert_that_differs_in_a_word_that_matters_is_shown() -> None:
    for last, words in pairs():

        async def earlier(last: str = last) -> str:
            return last

        assert await BeatWords(300, Beats(show_alerts=True), earlier).shown(step(words), silent=False) == words
        assert await BeatWords(300, Beats(show_alerts=True), earlier).shown(step(last), silent=False) == ""


def step(words: str) -> Step:
    return whole(RunRef(run_id="t", turn_id="t", session_key="s", attempt=1), Text(words))


@pytest.mark.parametrize(
    ("beginning", "may"),
    [
        ("", True),
        ("The *back", True),
        (LONG, True),
        (f"Hello! {LONG}", True),
        (f"{LONG} Let me know if you have any questions.", True),
        (f"The front {LONG}", False),
        (f"{LONG} {'And there is more. ' * 5}", False),
        (f"{LONG[:-1]}, {'x' * 61}", False),
    ],
)
def test_a_beginning_may_become_what_was_said(beginning: str, may: bool) -> None:
    assert may_become(beginning, LONG) is may


@pytest.mark.parametrize("piece", ["*a", "**a _b ", "`", "`a", "\n", "> ", "_*", "Bye.\n", "# "])
def test_hostile_texts_take_no_time(piece: str) -> None:
    text = piece * 20_000
    assert not is_repeat(text, f"{text}x")
