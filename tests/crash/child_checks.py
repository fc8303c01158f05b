"""What must be true of sub-agents when a world has come to rest."""

import json

from agent.context import NOT_EXECUTED
from tests.crash.script import TASK, answer_to, parse, words_of
from tests.crash.world import SESSION, World
from tests.stored import Like

SPAWNED = Like("%:subagent:%")


def check_children(world: World) -> list[str]:
    """Each is started once by its call, ends once, and is told of once, word for word; people read nothing of it."""
    return [*_started(world), *_told(world), *_said(world)]


def _started(world: World) -> list[str]:
    results, wrong = world.stored.results(), []
    there = {call_id: key for call_id, key in world.stored.children("call_id", "session_key")}
    for call_id, state in world.stored.calls("call_id", "state", name="sessions_spawn"):
        text = results[call_id][0]
        if ("was started as" in text) != (call_id in there) or (text == NOT_EXECUTED) == (call_id in there):
            wrong.append(f"{call_id} is {state} and told {text!r}, and this was started: {there}")
    return wrong


def _told(world: World) -> list[str]:
    wrong = []
    lines = world.stored.lines(SESSION)
    for key, label in world.stored.children("session_key", "label"):
        turns = world.stored.turns("turn_id", "state", session_key=key)
        if len(turns) != 1:
            wrong.append(f"{label} has the turns {turns}")
            continue
        turn_id, state = turns[0]
        about = [line for line in lines if f'sub-agent "{label}"' in line]
        rows = world.stored.messages("state", event_key=f"s:{turn_id}")
        script = parse(f"{label} {TASK}")
        assert script is not None
        last = script.steps[-1].text
        if state == "stopped":
            if rows or len(about) > 1 or any(last in line for line in about):
                wrong.append(f"{label} was stopped, and its parent was told {about}: {rows}")
            continue
        if len(rows) != 1:
            wrong.append(f"{label} is {state}, and there are {rows} of it")
        elif rows == [("done",)] and len(about) != 1:
            wrong.append(f"{label} is {state}, and its parent was told {about}")
        elif state == "done" and rows == [("done",)] and about[0].count(last) != 1:
            wrong.append(f"{label} said {last!r}, and its parent was told {about}")
        elif rows not in ([("done",)], [("dropped",)]):
            wrong.append(f"what {label} came to is {rows}")
    return wrong


def _said(world: World) -> list[str]:
    """What is answered to each result, in order, and no word of a sub-agent itself."""
    wrong = []
    shown = [item.body for item in world.platform.shown]
    if strange := [body for body in shown if any(token[0] == "S" for token, _ in words_of(body))]:
        wrong.append(f"people read what a sub-agent said: {strange}")
    for _, label in world.stored.children("session_key", "label"):
        script = answer_to(label)
        rows = world.stored.messages("turn_id", kind="child", session_key=SESSION, payload=Like(f'%"{label}%'))
        ends = [end for (turn_id,) in rows for end in world.stored.turns("outcome", turn_id=turn_id)]
        answers = [body for (body,) in world.stored.entries("body", kind="assistant") if script.token in body]
        if ends == [("completed",)] and not answers:
            wrong.append(f"nothing was said about {label}: {json.dumps(shown)}")
    return wrong
