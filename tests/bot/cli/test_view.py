"""What the terminal shows, decided from events and blocks alone."""

from dataclasses import replace

import pytest

from agent.events import (
    AgentEnd,
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
from channels.console.adapter import ConsoleBlock, ConsoleQuestion

RUN = RunRef(run_id="r1", turn_id="r1", session_key="k", attempt=1)
OPENED = 1_000


def start(run: RunRef = RUN) -> AgentStart:
    return AgentStart(run=run, at=2_000, id=f"{run.run_id}/start", model="m")


def begin(step: int = 0, run: RunRef = RUN) -> MessageStart:
    return MessageStart(run=run, at=2_000, id=f"{run.run_id}/{step}", step=step)


def text(delta: str, step: int = 0, run: RunRef = RUN) -> MessageUpdate:
    return MessageUpdate(run=run, at=2_000, step=step, part="text", delta=delta)


def thought(delta: str) -> MessageUpdate:
    return MessageUpdate(run=RUN, at=2_000, step=0, part="thinking", delta=delta)


def whole(text: str, *, cut: bool = False) -> MessageEnd:
    return MessageEnd(
        run=RUN, at=2_000, id="r1/0/end", step=0, text=text, calls=(), stop_reason="end", usage=Usage(), cut=cut
    )


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


def block(
    said: str, text: str | None = None, source: str = "turn:r1:s0:b0", planned_at: int = OPENED, number: int = 1
) -> ConsoleBlock:
    shown = said.strip() if text is None else text
    return ConsoleBlock(delivery_id=number, text=shown, source=source, said=said, planned_at=planned_at)


def live_text(view: View) -> str | None:
    return None if view.live is None else view.live.text


def test_a_block_takes_its_part_out_of_the_live_answer() -> None:
    view = View(OPENED)
    for event in (start(), begin(), text("One.\n\n"), text("Two.")):
        assert view.event(event) == []
    assert live_text(view) == "One.\n\nTwo."
    assert view.block(block("One.\n\n")) == [Piece(Tone.SAID, "One.")]
    assert live_text(view) == "Two."
    view.event(whole("One.\n\nTwo."))
    view.event(end())
    assert live_text(view) == "Two."  # on its way: it does not vanish before its block is there
    assert view.block(block("Two.", source="turn:r1:s0:b1")) == [Piece(Tone.SAID, "Two.")]
    assert view.live is None


def test_a_block_may_come_before_the_events_of_its_answer() -> None:
    view = View(OPENED)
    view.event(start())
    assert view.block(block("One.\n\n")) == [Piece(Tone.SAID, "One.")]
    view.event(begin())
    view.event(text("One.\n\nTwo."))
    assert live_text(view) == "Two."


def test_the_end_of_a_fence_is_nothing_to_wait_for() -> None:
    view = View(OPENED)
    for event in (start(), begin(), text("```\nx\n```\n"), whole("```\nx\n```\n"), end()):
        view.event(event)
    view.block(block("```\nx\n", "```\nx\n```"))
    assert view.live is None


def test_an_answer_whose_beginning_was_not_seen_comes_as_blocks_alone() -> None:
    view = View(OPENED)
    view.event(text("the rest of it"))
    assert view.running == "r1"
    assert live_text(view) == ""
    assert view.block(block("All of the rest of it.")) == [Piece(Tone.SAID, "All of the rest of it.")]


def test_a_second_start_makes_the_first_void() -> None:
    view = View(OPENED)
    for event in (start(), begin(), text("gar"), begin(), text("good")):
        view.event(event)
    assert live_text(view) == "good"


def test_a_cut_answer_shows_only_what_was_delivered() -> None:
    view = View(OPENED)
    for event in (start(), begin(), text("One. Tw")):
        view.event(event)
    view.block(block("One. "))
    assert view.event(whole("One. ", cut=True)) == [Piece(Tone.UNSAID, "Tw")]
    assert live_text(view) == ""
    view.event(begin(1))
    view.event(text("Two.", 1))
    assert live_text(view) == "Two."


def test_what_was_seen_of_a_stopped_answer_stays_and_is_not_printed_again() -> None:
    view = View(OPENED)
    for event in (start(), begin(), text("One.\n\nTwo.\n\nThree")):
        view.event(event)
    view.block(block("One.\n\n"))
    view.aborting = "r1"
    assert view.event(end(Outcome.ABORTED)) == [Piece(Tone.UNSAID, "Two.\n\nThree"), Piece(Tone.ASIDE, "Stopped.")]
    assert view.live is None
    assert view.running is None
    # the second block was being sent when the stop came
    assert view.block(block("Two.\n\n", source="turn:r1:s0:b1")) == []


def test_a_stop_that_a_command_has_made_is_told_by_its_reply() -> None:
    view = View(OPENED)
    view.event(start())
    assert view.event(end(Outcome.ABORTED)) == []
    assert view.block(block("Stopped.", source="cmd:7")) == [Piece(Tone.SAID, "Stopped.")]


def test_what_was_planned_of_a_cut_answer_is_waited_for() -> None:
    view = View(OPENED)
    for event in (start(), begin(), text("One. Two. Thr")):
        view.event(event)
    assert view.event(whole("One. Two. ", cut=True)) == [Piece(Tone.UNSAID, "Thr")]
    assert live_text(view) == "One. Two. "
    assert view.block(block("One. Two. ")) == [Piece(Tone.SAID, "One. Two.")]
    assert view.leave() == []


def test_what_is_live_stays_when_the_terminal_closes() -> None:
    view = View(OPENED)
    for event in (start(), begin(), text("One.\n\nTwo.")):
        view.event(event)
    view.block(block("One.\n\n"))
    assert view.leave() == [Piece(Tone.UNSAID, "Two.")]
    assert view.leave() == []


def test_a_question_of_another_terminal_and_the_last_exchange() -> None:
    view = View(OPENED)
    asked = Piece(Tone.ASKED, "why?")
    assert view.question(ConsoleQuestion(key="k", text="why?")) == [asked]
    heading = Piece(Tone.HEADING, "Last time")
    assert view.question(ConsoleQuestion(key="k", text="why?", answer="")) == [heading, asked]
    assert view.question(ConsoleQuestion(key="k", text="why?", answer="So.")) == [
        heading,
        asked,
        Piece(Tone.SAID, "So."),
    ]


def test_the_status_is_of_the_last_answer() -> None:
    view = View(OPENED)
    view.event(start())
    view.event(replace(end(), usage=Usage(input=12_345, output=67)))
    assert view.status == "m · 12,345 tokens in, 67 out"


def test_the_end_of_another_run_changes_nothing() -> None:
    view = View(OPENED)
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
    view = View(OPENED)
    view.event(start())
    view.event(call("read", arguments))
    assert view.live is not None
    assert view.live.tools == (line,)
    assert view.event(result("done", "much\ntext")) == [Piece(Tone.TOOL, line)]
    assert view.live is not None
    assert view.live.tools == ()


def test_a_failed_tool_says_why_in_its_line() -> None:
    view = View(OPENED)
    view.event(start())
    view.event(call("read", '{"path": "x"}', "c1"))
    view.event(call("exec", '{"command": "y"}', "c2"))
    assert view.event(result("failed", "no such file\ndetails")) == [Piece(Tone.FAILED_TOOL, "read x: no such file")]
    assert view.event(result("cut", "", "c2")) == [Piece(Tone.FAILED_TOOL, "exec y: outcome unknown")]
    (long,) = view.event(result("failed", "x" * 500, "c3"))
    assert len(long.text) < 100


def test_thinking_is_shown_until_the_answer_begins() -> None:
    view = View(OPENED)
    for event in (start(), begin(), thought("hm, "), thought("boats")):
        view.event(event)
    assert view.live is not None
    assert view.live.thinking == "hm, boats"
    view.event(text("Boats."))
    assert view.live.thinking == ""


def test_a_decision_of_the_runner_is_an_aside() -> None:
    notice = Notice(run=RUN, at=2_000, id="r1/n", kind="retry", detail="Trying again.")
    assert View(OPENED).event(notice) == [Piece(Tone.ASIDE, "Trying again.")]


def test_what_came_while_nobody_was_here_has_one_heading() -> None:
    view = View(OPENED)
    first = view.block(block("a", source="turn:r0:s0:b0", planned_at=OPENED - 1))
    assert first == [Piece(Tone.HEADING, "While you were away"), Piece(Tone.SAID, "a")]
    assert view.block(block("b", source="cmd:7", planned_at=OPENED - 1)) == [Piece(Tone.SAID, "b")]
    assert view.block(block("c", source="cmd:8")) == [Piece(Tone.SAID, "c")]


def test_after_a_lost_connection_a_run_is_known_again_by_its_next_event() -> None:
    view = View(OPENED)
    for event in (start(), begin(), text("One"), call("read", "{}")):
        view.event(event)
    view.reconnected()
    assert view.live is None
    view.event(text(" more"))
    assert view.running == "r1"
    assert live_text(view) == ""


def test_a_run_that_is_parked_is_neither_over_nor_failed() -> None:
    view = View(0)
    view.event(AgentStart(run=RUN, at=1_000, model="m"))
    assert view.event(replace(end(Outcome.PARKED), id="")) == []
    assert (view.running, view.live) == (None, None)
    view.event(AgentStart(run=replace(RUN, attempt=2), at=2_000, model="m"))
    assert view.running == RUN.run_id
    assert view.event(end()) == []
