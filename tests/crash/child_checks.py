"""What must be true of sub-agents, and of what sessions say to each other, when a world has come to rest."""

import json

from agent.context import NOT_EXECUTED
from tests.crash.model import BESIDE
from tests.crash.script import Script, parse, words_of
from tests.crash.world import SESSION, World
from tests.stored import Like

SPAWNED = Like("%:subagent:%")


def check_children(world: World) -> list[str]:
    """Each is started once by its call, each of its turns ends once, and is told of once, word for word; people read
    nothing of it. What is sent to a session is there once, and is answered there.
    """
    return [*_started(world), *_sent(world), *_told(world), *_said(world), *_relayed(world)]


def _started(world: World) -> list[str]:
    there = {call_id: key for call_id, key in world.stored.children("call_id", "session_key")}
    return _results(world, "sessions_spawn", "was started as", there)


def _sent(world: World) -> list[str]:
    rows = world.stored.messages("event_key", "session_key", event_key=Like("sent:%"))
    there = {key.rpartition(":")[2]: session for key, session in rows}
    wrong = _results(world, "sessions_send", "Sent.", there)
    return wrong + ([f"sent more than once: {rows}"] if len(there) != len(rows) else [])


def _results(world: World, tool: str, words: str, there: dict[str, str]) -> list[str]:
    """Whether the results of calls say what they have done. there: what they have made, by their ids."""
    results, wrong = world.stored.results(), []
    for call_id, state, args in world.stored.calls("call_id", "state", "args", name=tool):
        text = results[call_id][0]
        if json.loads(args).get("session") == "none":  # the sub-agent was not started
            continue
        if (words in text) != (call_id in there) or (text == NOT_EXECUTED) == (call_id in there):
            wrong.append(f"{call_id} is {state} and told {text!r}, and this is there: {there}")
    return wrong


def _script(payload: str) -> Script:
    message = json.loads(payload)
    found = parse(f"{message['extra_context']}\n<subagent>\n{message['text']}")
    assert found is not None
    return found


def _told(world: World) -> list[str]:
    wrong = []
    lines = world.stored.lines(SESSION)
    for key, label in world.stored.children("session_key", "label"):
        about = [line for line in lines if f'(the sub-agent "{label}"' in line]
        dropped = [line for line in lines if f'The sub-agent "{label}"' in line]
        turns = world.stored.turns("turn_id", "state", session_key=key)
        asked = world.stored.messages("turn_id", "payload", session_key=key, kind="child", state="done")
        if len(turns) != len({turn_id for turn_id, _ in asked} | {turn_id for turn_id, _ in turns}):
            wrong.append(f"{label} was asked {asked} and has the turns {turns}")
        read = 0
        for turn_id, state in turns:
            rows = world.stored.messages("state", event_key=f"s:{turn_id}")
            texts = [json.loads(payload)["text"] for of, payload in asked if of == turn_id]
            script = parse(texts[0]) if texts else None
            times = sum(line.count(script.steps[-1].text) for line in lines) if script else 0
            read += rows == [("done",)]
            if state == "stopped":
                if rows or times:
                    wrong.append(f"{label} was stopped, and its parent was told {about}: {rows}")
            elif len(rows) != 1 or rows[0][0] not in ("done", "dropped"):
                wrong.append(f"{label} is {state}, and there are {rows} of it")
            elif state == "done" and times != (rows == [("done",)]):
                wrong.append(f"{label} said {script}, and its parent was told {about}")
        if len(about) != read or len(dropped) > len(turns) - read:
            wrong.append(f"{label} has ended {read} of {turns} times for its parent, which was told {about}, {dropped}")
    return wrong


def _said(world: World) -> list[str]:
    """What is answered to each result, in order, and no word of a sub-agent itself."""
    wrong = []
    shown = [item.body for item in world.platform.shown]
    if strange := [body for body in shown if any(token[0] == "S" for token, _ in words_of(body))]:
        wrong.append(f"people read what a sub-agent said: {strange}")
    answers = [body for (body,) in world.stored.entries("body", kind="assistant")]
    for turn_id, payload in world.stored.messages("turn_id", "payload", event_key=Like("s:%"), state="done"):
        token = _script(payload).token
        completed = world.stored.turns(turn_id=turn_id, outcome="completed")
        if completed and not any(token in body for body in answers):
            wrong.append(f"nothing was said about {payload}: {json.dumps(shown)}")
    return wrong


def _relayed(world: World) -> list[str]:
    """What is answered where something was sent, word for word."""
    wrong = []
    words = [found for item in world.platform.visible("B") for found in words_of(item.body)]
    of_them = world.stored.messages("turn_id", "payload", "state", event_key=Like("sent:%"), session_key=BESIDE)
    for turn_id, payload, state in of_them:
        script = parse(json.loads(payload)["text"])
        assert script is not None
        seen = [number for token, number in words if token == script.token]
        whole = list(range(script.words))
        completed = world.stored.turns(turn_id=turn_id, outcome="completed")
        if state != "done" or (completed and not set(whole) <= set(seen)):
            wrong.append(f"{script.token} is {state}, and {seen} can be seen")
    return wrong
