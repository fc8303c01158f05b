"""Ordinary tasks with the calls that a sensible model makes: at most one question more than without the rule.

Whoever is asked answers "always", which is "Allow for this task" where the rule asks.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from channels.message import Attachment, Quoted
from tests.attacks.obedient import GROUP, TRUSTING, World, world
from tests.standins.script import Call
from tests.standins.web_server import Said, searxng

Calls = Callable[[World], Sequence[Call]]


def fetch(path: str) -> Calls:
    return lambda made: [Call("web_fetch", {"url": made.web.at + path})]


def calls(*made: Call) -> Calls:
    return lambda world: made


def both(*parts: Calls) -> Calls:
    return lambda made: [call for part in parts for call in part(made)]


NOTES = Call("write", {"path": "notes.md", "content": "moss grows", "mode": "append"})
READ = Call("read", {"path": "letter.txt"})
TEST = Call("exec", {"command": "sh test.sh", "needs": "work"})
REMEMBER = Call("write", {"path": "MEMORY.md", "content": "moss is dry", "mode": "append"})
MEND = Call("write", {"path": "code.txt", "content": "better", "mode": "overwrite"})
SENT: dict[str, Any] = {"attachments": (Attachment(kind="file", ref="ref", name="plan.txt"),)}
PASSED_ON: dict[str, Any] = {"forwarded": Quoted(author="Ann", text="Please tell Bob that I come.")}
IN_GROUP: dict[str, Any] = {"place": GROUP, "sender": "6"}

# What is said, what the model does, and how many questions the rule adds to those there are without it.
TASKS: dict[str, tuple[dict[str, Any], Calls, int]] = {
    "sum up a page and save notes": ({}, both(fetch("/page"), calls(NOTES)), 0),
    "read an address of the owner": ({}, fetch("/page"), 0),
    "follow a result of a search": ({}, both(calls(Call("web_search", {"query": "moss"})), fetch("/found")), 0),
    "follow a link of a page": ({}, both(fetch("/page"), fetch("/link")), 0),
    "read one file and change another": ({}, calls(READ, MEND), 0),
    "run a test": ({}, calls(TEST), 0),
    "mend something until its test passes": ({}, calls(READ, TEST, MEND, TEST, MEND, TEST), 1),
    "plan a reminder": ({}, calls(Call("schedule", {"every": "1d", "prompt": "water the moss"})), 0),
    "plan what a letter says": ({}, calls(READ, Call("schedule", {"every": "2d", "prompt": "call Ann"})), 1),
    "remember what a page says": (
        {},
        both(
            fetch("/page"), calls(*(Call("write", {"path": "MEMORY.md", "content": x, "mode": "append"}) for x in "ab"))
        ),
        1,
    ),
    "sum up what was sent": (SENT, calls(NOTES), 0),
    "tell somebody what was passed on": (
        PASSED_ON,
        calls(Call("message", {"action": "send", "to": "2", "text": "Ann comes."})),
        1,
    ),
    "answer somebody in a group": (IN_GROUP, calls(Call("read", {"path": "."})), 0),
}


async def questions(made: World, said: dict[str, Any], todo: Calls) -> int:
    """How often a person is asked until a task is done."""
    for call in todo(made):
        made.model.add(call)
    before = len(made.hark.stored.approvals("approval_id"))
    address = " and ".join(made.web.at + path for path in ("/page",))
    await made.say(f"please do it, see {address}", **said)
    while made.questions():
        await made.decide("always")
    assert not made.model.unused
    return len(made.hark.stored.approvals("approval_id")) - before


@pytest.mark.parametrize("task", TASKS)
async def test_an_ordinary_task_is_asked_about_at_most_once_more(tmp_path: Path, task: str) -> None:
    said, todo, more = TASKS[task]
    found = []
    for name, tools in (("with", {}), ("without", TRUSTING)):
        async with world(tmp_path / name, {"tools": tools}) as made:
            made.hark.channel.files["ref"] = b"a plan"
            made.web.pages |= {
                "/page": Said(f"See [more]({made.web.at}/link).".encode(), "text/plain"),
                "/link": Said(b"more", "text/plain"),
                "/found": Said(b"found", "text/plain"),
                "/search": searxng([("Moss", f"{made.web.at}/found", "grows")]),
            }
            for path in ("letter.txt", "code.txt", "test.sh"):
                made.put(path, "true")
            found.append(await questions(made, said, todo))
    assert found[0] - found[1] == more, found
