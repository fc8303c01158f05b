"""From the model's words to blocks in the ledger: whole, in order, and the same however the stream was cut."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.events import RunRef
from agent.message import Usage
from bot.persistence.turns import Said, Turn, TurnKind
from bot.replies.cutting import Replies
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Planned
from channels.settings import ReplyTo, Streaming
from channels.sources import answer
from channels.telegram.render import bodies
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
    turn = Turn(
        run=RunRef(run_id="t", turn_id="t", session_key="s", attempt=1),
        kind=TurnKind.REPLY,
        transcript_id="t",
        messages=(question,),
        conv_id=1,
        place=place,
        step=0,
        usage=Usage(),
        ran=0,
        entries=(),
        prompt=None,
        fingerprint=None,
        more=False,
        said=(Said(source=answer("t", 1, 0), text="x", step=1),) if spoken else (),
    )
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
        hark.model.add(Say(MARKDOWN), Break())
        hark.model.add("A short answer.")
        reply = await hark.say("everything, please")
        assert reply.texts == ["A short answer."]
        hark.model.add(Say(MARKDOWN))
        reply = await hark.say("everything, please")
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
