"""When words say again what has been said, and when they only look so."""

import pytest

from agent.events import RunRef
from agent.journal import Step
from agent.message import Text
from bot.persistence.turns import Said
from bot.replies.beat_words import BeatWords
from bot.replies.repeats import is_repeat, may_become
from channels.settings import Beats, Streaming
from channels.sources import tool_message
from tests.bot.pairs import pairs
from tests.bot.replies.test_replies import replies, stream
from tests.bot.store.opened import whole

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
    """As an answer behind a message of a tool, as the second answer of a turn, and its blocks each by itself."""
    found = list(pairs())
    assert len(found) // 2 >= 200
    for said, answer in found:
        made = replies(Streaming())
        made.sent(Said(source=tool_message("t", "c"), text=said, step=None))
        shown = [*stream(made, 1, "", [said[:9], said[9:]]), *stream(made, 2, "", [answer[:9], answer[9:]])]
        assert [(block.body, bool(block.unless)) for block in shown] == [(said, True), (answer, False)]


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
