"""When words say again what has been said, and when they only look so."""

import pytest

from bot.repeats import is_repeat, may_become

LONG = "The backup of all three servers has finished without errors, and every file was checked against its sum twice."


@pytest.mark.parametrize(
    ("text", "earlier", "repeats"),
    [
        ("Done.", "done.", True),
        ("**Done!** 🎉  See [the log](https://x.org/1).", "Done! See the log.", True),
        ("# Report\n\n- one\n- two", "report\none two", True),
        (LONG, LONG.replace("finished", "ended", 1), True),
        (LONG, LONG.replace("three", "4 of"), False),
        (LONG.replace("all three", "all 3"), LONG.replace("all three", "all 4"), False),
        (LONG, LONG.replace("was checked", "wasn't checked"), False),
        (LONG, LONG + " And there is a second part that nobody has said so far.", False),
        ("I am done, and here is the rest.", "done", False),
        ("Deployed: 3 services are up.", "Deployed; 3 services are up!", True),
        ("done", "I am done, and here is the rest.", False),
        ("Passed.", "Failed.", False),
        ("", "", False),
        ("🎉", "🙂", False),
    ],
)
def test_repeats(text: str, earlier: str, repeats: bool) -> None:
    assert is_repeat(text, earlier) is repeats


def test_only_equal_words_repeat_a_whole_answer() -> None:
    assert not is_repeat(LONG, LONG.replace("finished", "ended", 1), near=False)
    assert is_repeat(LONG.upper(), f"**{LONG}**", near=False)


def test_a_beginning_may_become_what_was_said() -> None:
    assert may_become("The *back", LONG)
    assert not may_become("The front", LONG)
