"""What the terminal shows, decided from events alone."""

from dataclasses import replace

import pytest

from agent.events import (
    PARKED,
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notice,
    Outcome,
    RunRef,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from agent.message import Usage
from bot.cli.terminal.view import Piece, Tone, View
from bot.persistence.turns import Exchange

RUN = RunRef(run_id="r1", turn_id="r1", session_key="k", attempt=1)
OPENED = 1_000


def start(run: RunRef = RUN) -> AgentStart:
    return AgentStart(run=run, at=2_000, id=f"{run.run_id}/start", model="m")


def begin(step: int = 0, run: RunRef = RUN) -> MessageStart:
    return MessageStart(run=run, at=2_000, id=f"{run.run_id}/{step}", step=step)


def text(delta: str, step: int = 0, run: RunRef = RUN, offset: int = 0) -> MessageUpdate:
    return MessageUpdate(run=run, at=2_000, step=step, part="text", delta=delta, offset=offset)


def written(*deltas: str, step: int = 0) -> list[MessageUpdate]:
    """An answer in pieces."""
    return [text(delta, step, offset=len("".join(deltas[:n]))) for n, delta in enumerate(deltas)]


def thought(delta: str) -> MessageUpdate:
    return MessageUpdate(run=RUN, at=2_000, step=0, part="thinking", delta=delta)


def whole(text: str, *, cut: bool = False, step: int = 0, run: RunRef = RUN, at: int = 2_000) -> MessageEnd:
    return MessageEnd(run=run, at=at, step=step, text=text, calls=(), stop_reason="end", usage=Usage(), cut=cut)


def said(words: str, at: int = 2_000) -> Notice:
    return Notice(run=replace(RUN, run_id="cmd:7", turn_id="cmd:7"), at=at, id=words, kind="said", detail=words)


def end(outcome: Outcome = Outcome.COMPLETED, run: RunRef = RUN) -> AgentEnd:
    return AgentEnd(run=run, at=3_000, id=f"{run.run_id}/end", outcome=outcome, model="m", usage=Usage(), duration=1.0)


def call(name: str, arguments: str, call_id: str = "c1") -> ToolExecutionStart:
    return ToolExecutionStart(
        run=RUN, at=2_000, id=f"r1/0/{call_id}", step=0, call_id=call_id, name=name, arguments=arguments
    )


def result(state: str, text: str, call_id: str = "c1") -> ToolExecutionEnd:
    return ToolExecutionEnd(
        run=RUN,
        at=2_000,
        id=f"r1/0/{call_id}/end",
        step=0,
        call_id=call_id,
        name="read",
        state=state,
        text=text,  # type: ignore[arg-type]
    )


def opened() -> View:
    return View(OPENED)


def shown(view: View, *events: AgentEvent) -> list[Piece]:
    """What is printed for these events."""
    return [piece for event in events for piece in view.event(event)]


def live_text(view: View) -> str | None:
    return None if view.live is None else view.live.text


def test_an_answer_is_live_until_it_is_whole() -> None:
    view = opened()
    assert shown(view, start(), begin(), *written("One.\n\n", "Two.")) == []
    assert live_text(view) == "One.\n\nTwo."
    assert view.event(whole("One.\n\nTwo.")) == [Piece(Tone.SAID, "One.\n\nTwo.")]
    assert live_text(view) == ""
    assert shown(view, end()) == []
    assert view.live is None


def test_what_is_written_for_the_service_is_not_shown_while_it_streams() -> None:
    view = opened()
    for event in (start(), begin(), *written("[[reply", "_to:7]] Good", " morning NO_RE", "PLY")):
        view.event(event)
    assert live_text(view) == "Good morning"


def test_an_answer_that_was_not_followed_comes_whole() -> None:
    assert shown(opened(), start(), begin(), whole("One."), end()) == [Piece(Tone.SAID, "One.")]
    assert shown(opened(), whole("One.")) == [Piece(Tone.SAID, "One.")]


def test_an_answer_whose_beginning_was_not_seen_comes_at_its_end() -> None:
    view = opened()
    assert view.event(text("the rest of it")) == []
    assert view.running == "r1"
    assert live_text(view) == ""
    assert view.event(whole("All of the rest of it.")) == [Piece(Tone.SAID, "All of the rest of it.")]


def test_what_comes_behind_a_gap_waits_for_the_end() -> None:
    view = opened()
    assert shown(view, start(), begin(), text("One.\n\n"), text("Three.\n\nFour.", offset=12)) == []
    assert live_text(view) == "One."
    assert shown(view, text("Five.", offset=6)) == []
    assert live_text(view) == "One.\n\nFive."
    (piece,) = view.event(whole("One.\n\nTwo.\n\nThree.\n\nFour."))
    assert piece.text == "One.\n\nTwo.\n\nThree.\n\nFour."


def test_a_second_start_makes_the_first_void() -> None:
    view = opened()
    assert shown(view, start(), begin(), text("gar"), begin(), text("good")) == []
    assert live_text(view) == "good"


def test_a_cut_answer_says_only_what_counts() -> None:
    view = opened()
    assert shown(view, start(), begin(), *written("One.\n\n", "Tw")) == []
    cut = [Piece(Tone.SAID, "One.\n\n"), Piece(Tone.UNSAID, "Tw")]
    assert view.event(whole("One.\n\n", cut=True)) == cut
    assert live_text(view) == ""
    shown(view, begin(1), text("Two.", 1))
    assert live_text(view) == "Two."


def test_what_was_seen_of_a_stopped_answer_stays() -> None:
    view = opened()
    assert shown(view, start(), begin(), *written("One. ", "Two")) == []
    view.aborting = "r1"
    assert view.event(whole("One. ", cut=True)) == [Piece(Tone.SAID, "One. "), Piece(Tone.UNSAID, "Two")]
    assert view.event(end(Outcome.ABORTED)) == [Piece(Tone.ASIDE, "Stopped.")]
    assert view.live is None
    assert view.running is None
    assert shown(view, text("Fo", offset=17)) == []  # said before it knew of the stop
    assert view.running is None


def test_a_stopped_answer_of_which_nothing_was_planned_stays_too() -> None:
    view = opened()
    shown(view, start(), begin(), text("One"))
    view.aborting = "r1"
    assert view.event(end(Outcome.ABORTED)) == [Piece(Tone.UNSAID, "One"), Piece(Tone.ASIDE, "Stopped.")]
    assert view.live is None


def test_a_stop_that_a_command_has_made_is_told_by_its_reply() -> None:
    view = opened()
    view.event(start())
    assert view.event(end(Outcome.ABORTED)) == []
    assert view.event(said("Stopped.")) == [Piece(Tone.SAID, "Stopped.")]
    assert view.running is None


def test_what_is_live_stays_when_the_terminal_closes() -> None:
    view = opened()
    shown(view, start(), begin(), *written("One.\n\n", "Two."))
    assert view.leave() == [Piece(Tone.UNSAID, "One.\n\nTwo.")]
    assert view.leave() == []


def test_a_question_of_another_terminal_and_the_last_exchange() -> None:
    view = opened()
    asked = Piece(Tone.ASKED, "why?")
    assert view.event(replace(start(), message="why?")) == [asked]
    heading = Piece(Tone.HEADING, "Last time")
    assert view.last(Exchange(question="why?", answer="")) == [heading, asked]
    assert view.last(Exchange(question="why?", answer="So.")) == [heading, asked, Piece(Tone.SAID, "So.")]


def test_the_status_is_of_the_last_answer() -> None:
    view = opened()
    view.event(start())
    view.event(replace(end(), usage=Usage(input=12_345, output=67)))
    assert view.status == "m · 12,345 tokens in, 67 out"


def test_the_end_of_another_run_changes_nothing() -> None:
    view = opened()
    view.event(start())
    other = RunRef(run_id="r2", turn_id="r2", session_key="k", attempt=1)
    assert view.event(end(Outcome.ABORTED, other)) == []
    assert view.running == "r1"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('{"path": "AGENTS.md", "limit": 3}', "read AGENTS.md"),
        ('{"limit": 3}', "read"),
        ('{"content": "words", "path": "b.md"}', "read b.md"),
        ("{broken", "read"),
        ("[1]", "read"),
        ('{"path": "a\\tb\\nsecret"}', "read a b"),
    ],
)
def test_a_tool_call_is_one_line(arguments: str, line: str) -> None:
    view = opened()
    view.event(start())
    view.event(call("read", arguments))
    assert view.live is not None
    assert view.live.tools == (line,)
    assert view.event(result("done", "much\ntext")) == [Piece(Tone.TOOL, line)]
    assert view.live is not None
    assert view.live.tools == ()


def test_a_failed_tool_says_why_in_its_line() -> None:
    view = opened()
    view.event(start())
    view.event(call("read", '{"path": "x"}', "c1"))
    view.event(call("exec", '{"command": "y"}', "c2"))
    assert view.event(result("failed", "no such file\ndetails")) == [Piece(Tone.FAILED_TOOL, "read x: no such file")]
    assert view.event(result("cut", "", "c2")) == [Piece(Tone.FAILED_TOOL, "exec y: outcome unknown")]
    (long,) = view.event(result("failed", "x" * 500, "c3"))
    assert len(long.text) < 100


def test_thinking_is_shown_until_the_answer_begins() -> None:
    view = opened()
    for event in (start(), begin(), thought("hm, "), thought("boats")):
        view.event(event)
    assert view.live is not None
    assert view.live.thinking == "hm, boats"
    view.event(text("Boats."))
    assert view.live.thinking == ""


def test_a_decision_of_the_runner_is_an_aside() -> None:
    notice = Notice(run=RUN, at=2_000, id="r1/n", kind="retry", detail="Trying again.")
    assert opened().event(notice) == [Piece(Tone.ASIDE, "Trying again.")]


def test_what_came_while_nobody_was_here_has_one_heading() -> None:
    view = opened()
    early = OPENED - 1
    first = shown(view, replace(start(), at=early), whole("a", at=early))
    assert first == [Piece(Tone.HEADING, "While you were away"), Piece(Tone.SAID, "a")]
    assert [piece.away for piece in first] == [False, True]
    assert view.event(said("b", at=early)) == [Piece(Tone.SAID, "b")]
    assert view.event(said("c")) == [Piece(Tone.SAID, "c")]


def test_after_a_lost_connection_a_run_is_known_again_by_its_next_event() -> None:
    view = opened()
    shown(view, start(), begin(), text("One"), call("read", "{}"))
    view.reconnected()
    assert view.live is None
    view.event(text(" more", offset=3))
    assert view.running == "r1"
    assert live_text(view) == ""
    assert view.event(whole("One more.")) == [Piece(Tone.SAID, "One more.")]


def test_a_run_that_is_parked_is_neither_over_nor_failed() -> None:
    view = View(0)
    view.event(AgentStart(run=RUN, at=1_000, model="m"))
    told = Notice(run=RUN, at=1_500, step=0, number=0, kind=PARKED, detail="No model answers.")
    assert view.event(told) == [], "it was said as a message"
    assert view.event(replace(end(Outcome.PARKED), id="")) == []
    assert (view.running, view.live) == (None, None)
    view.event(AgentStart(run=replace(RUN, attempt=2), at=2_000, model="m"))
    assert view.running == RUN.run_id
    assert view.event(end()) == []


def asks(digit: str, end: str = "") -> Notice:
    """A request is shown."""
    return replace(said("May I?"), id=f"r1/said/ask:{digit * 32}{end}")


def test_what_expired_can_be_asked_again() -> None:
    view = View(OPENED)
    for event in (asks("a"), asks("b", ":2"), asks("a", ":0.7"), said("else")):
        view.event(event)
    assert view.asked == ["b" * 8, "a" * 8]
    view.event(Notice(run=RUN, at=2_000, id=f"r1/allowed/{'b' * 32}", kind="allowed", detail=""))
    assert view.asked == ["a" * 8]
    (piece,) = view.event(Notice(run=RUN, at=2_000, id=f"r1/expired/{'a' * 32}", kind="expired", detail=""))
    text = "⌛ Nobody decided in time. `/approve aaaaaaaa again` asks again."
    assert (piece.tone, piece.text, piece.said) == (Tone.ASIDE, text, text), "also where there is no screen"
    assert view.asked == []
    for number in range(20):
        view.event(asks(f"{number:032x}"[-1] if number < 16 else "0"))
    assert len(view.asked) == 8
