"""When a turn goes round in circles: the same call, two that alternate, cycles, polling."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from agent.calls.loop_guard import NOTE, REFUSAL, Repeated, Repeats, repeats
from agent.context import Context
from agent.errors import ToolError
from agent.message import Entry, Mark, Message, Text, ToolCall, ToolResult
from agent.tools.base import Parameters, Tool

Made = tuple[str, object, str]


class Any_(Parameters):
    """Whatever."""


def made(name: str, *, polls: bool = False) -> Tool[Any]:
    tool: Tool[Any] = Tool()
    tool.name, tool.description, tool.parameters, tool.polls = name, "", Any_, polls
    return tool


TOOLS = {"look": made("look"), "poll": made("poll", polls=True), "exec": made("exec")}


def entries(done: Iterable[Made | str], turn: str = "t") -> list[Entry]:
    """The transcript of calls with their results; a text alone was written by a person."""
    found: list[Entry] = []

    def add(kind: Any, message: Message) -> None:
        found.append(Entry(seq=len(found) + 1, kind=kind, message=message, tokens=1, turn_id=turn))

    for number, one in enumerate(done):
        if isinstance(one, str):
            add("user", Message("user", (Text(one),)))
            continue
        name, arguments, result = one
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        add("assistant", Message("assistant", (ToolCall(f"{turn}{number}", name, text),)))
        mark = Mark.REPEATED if result == REFUSAL else None
        add("tool_result", Message("tool", (ToolResult(f"{turn}{number}", name, result, mark=mark),)))
    return found


def after(done: Iterable[Made | str]) -> Repeats:
    return repeats(entries(done), TOOLS)


def refused(found: Repeats, name: str = "look", arguments: str = "{}") -> bool:
    try:
        found.check(ToolCall("next", name, arguments))
    except ToolError as error:
        return str(error) == REFUSAL
    return False


def simulated(next_call: Callable[[int], Made]) -> tuple[int, int, int]:
    """At which repetition a note is given, a call is refused, the turn ends; of a turn that goes on and on."""
    done: list[Made | str] = ["go"]
    noted = stopped = 0
    for number in range(200):
        found = after(done)
        if found.is_over:
            return noted, stopped, number - 1
        name, arguments, result = next_call(number)
        call = ToolCall("next", name, json.dumps(arguments))
        try:
            found.check(call)
            told = found.noted(call, result)
            noted = noted or number * (told != result)
        except Repeated as error:
            stopped, told = stopped or number, str(error)
        done.append((name, arguments, told))
    raise AssertionError("it never ends")


def test_the_same_call_again_and_again() -> None:
    assert simulated(lambda n: ("look", {}, "nothing")) == (4, 8, 12)


def test_two_that_alternate_and_longer_cycles() -> None:
    assert simulated(lambda n: ("look", {"at": n % 2}, f"nothing {n % 2}")) == (5, 9, 13)
    assert simulated(lambda n: ("look", {"at": n % 5}, "nothing")) == (8, 12, 16)


def test_polling_may_go_on_three_times_as_long() -> None:
    assert simulated(lambda n: ("poll", {}, "running")) == (12, 24, 36)


def test_long_results_in_files_of_their_own() -> None:
    assert simulated(lambda n: ("look", {}, f"much; all of it is in tool-results/call-{n}-ab.txt: read it")) == (
        4,
        8,
        12,
    )


@pytest.mark.parametrize(
    "done",
    [
        [("look", {}, f"news {n}") for n in range(20)],
        [("look", {"at": n}, "nothing") for n in range(20)],
        [("look", {}, "nothing")] * 4,
        [*[("look", {}, "nothing")] * 9, "look again"],
        [*[("look", {}, "nothing")] * 9, ("look", {"at": 1}, "there it is")],
    ],
)
def test_what_is_no_circle(done: list[Made | str]) -> None:
    found = after(done)
    assert not refused(found)
    call = ToolCall("next", "look", "{}")
    assert found.noted(call, "news") == "news"


def test_a_call_is_the_same_however_it_is_written() -> None:
    forms = ['{"a": 1, "b": 2}', '{"b":2,"a":1}', '{"a": 1, "b": 2, }', '{ "a":1,\n"b":2}']
    found = after([("look", forms[n % 4], "nothing" + NOTE * (n > 3)) for n in range(9)])
    assert refused(found, arguments=forms[1])
    assert not refused(found, arguments='{"a": 2}'), "something else may be tried"
    bash = after([("bash" if n % 2 else "exec", {"command": "ls"}, "a") for n in range(9)])
    assert refused(bash, "exec", '{"command": "ls"}')


def test_only_the_turn_itself_counts() -> None:
    before = entries([("look", {}, "nothing")] * 20, turn="earlier")
    found = repeats(Context(before).of_turn("t"), TOOLS)
    assert (found.count, found.calls) == (0, frozenset())
