"""Answers that claim an act are told from honest ones, by two corpora: one to tune on, one to count on."""

from pathlib import Path

import pytest

from agent.calls.claims import unfounded
from agent.message import Mark
from tests.scripted_model import Call
from tests.service import Hark

_CORPORA = Path(__file__).parent / "claims"
_EVERYTHING = ("write", "message", "schedule")


def read(name: str) -> list[tuple[str, str]]:
    """The label and the text of each line of a corpus."""
    lines = (_CORPORA / name).read_text().splitlines()
    return [(label, text) for label, _, text in (line.partition(" ") for line in lines) if label != "#"]


def test_lies_are_found_and_honest_answers_are_not() -> None:
    corpus = read("tuning.txt") + read("counted.txt")
    assert [label for label, _ in corpus].count("lie") == 100
    assert len(corpus) == 200
    missed = [text for label, text in corpus if label == "lie" and not unfounded(text, ())]
    questioned = [text for label, text in corpus if label == "true" and unfounded(text, ())]
    assert len(missed) <= 5, missed
    assert len(questioned) <= 1, questioned


@pytest.mark.parametrize("name", ["tuning.txt", "counted.txt"])
def test_what_was_done_is_no_lie(name: str) -> None:
    assert not [text for label, text in read(name) if unfounded(text, _EVERYTHING)]
    assert not [text for label, text in read(name) if unfounded(text, ("exec",))]


def test_another_deed_does_not_found_a_claim() -> None:
    assert unfounded("I have sent it to #ops.", ("write", "read"))
    assert not unfounded("I have sent it to #ops.", ("message",))


def test_earlier_deeds_found_only_what_is_told_of_an_earlier_time() -> None:
    assert not unfounded("I sent it yesterday.", (), ("message",))
    assert unfounded("I sent it yesterday.", (), ())
    assert unfounded("I have sent it.", (), ("message",))


async def test_a_claim_is_taken_back_before_it_is_shown(hark: Hark) -> None:
    hark.model.add("I have sent it to #ops.")
    hark.model.add("I did not send it.")
    assert (await hark.say("send it")).texts == ["I did not send it."]
    assert len(hark.model.requests) == 2
    assert hark.model.requests[1].messages[-1].mark is Mark.CLAIM


async def test_a_claim_is_made_true(hark: Hark) -> None:
    hark.model.add("I've saved it to report.md.")
    hark.model.add(Call("write", {"path": "report.md", "content": "x"}))
    hark.model.add("I've saved it to report.md.")
    assert (await hark.say("save it")).texts == ["I've saved it to report.md."]
    assert len(hark.model.requests) == 3


async def test_the_model_is_asked_once_only(hark: Hark) -> None:
    hark.model.add("I have sent it.")
    hark.model.add("I have sent it, really.")
    assert (await hark.say("send it")).texts == ["I have sent it, really."]
    assert len(hark.model.requests) == 2


async def test_an_honest_answer_is_not_questioned(hark: Hark) -> None:
    assert (await hark.say("send it", answers=["I will send it tomorrow."])).texts == ["I will send it tomorrow."]
    assert len(hark.model.requests) == 1


async def test_what_answers_the_note_must_say_something(hark: Hark) -> None:
    hark.model.add("I have sent it.")
    hark.model.add("")
    hark.model.add("It was not sent.")
    assert (await hark.say("send it")).texts == ["It was not sent."]


def test_a_report_about_the_world_is_no_claim() -> None:
    assert not unfounded("The backup of Monday is complete, and 42 files were stored.", ())


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Message sent!",
            "File saved.",
            "Done: file saved as a.md",
            "Gespeichert!",
            "Reminder set for tomorrow at 9.",
        ),
        *("Ich hab's an Tom geschickt.", "Ive updated your calendar", "I just ran the tests and they all pass."),
        *("I restarted nginx.", "I have installed the package and pushed the commit."),
    ],
)
def test_short_reports_and_commands_are_claims(text: str) -> None:
    assert unfounded(text, ("read",))
    assert not unfounded(text, ("exec",))


@pytest.mark.parametrize(
    "text",
    [
        *("Saved searches are under the menu.", "Deleted files go to the trash.", "Sent items are in the folder Sent."),
        *("Messages sent to the group are seen by all.", "Files saved by default lie in Downloads."),
        *("I ran into a problem while reading it.", "We ran the marathon in 2019.", "Posted speed limits apply."),
        *("The report saved us a lot of time.", "Notes created in the app sync by themselves."),
    ],
)
def test_words_about_the_world_are_no_claims(text: str) -> None:
    assert not unfounded(text, ())
