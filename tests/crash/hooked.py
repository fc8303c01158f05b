"""Hooks and a voice in a world that dies: what was forbidden is never seen, and what is asked about stays as it was.

A message with UNHEARD is dropped at its point, an answer with UNSAID is not sent.
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agent.hooks import Hook, HookEvent
from bot.persistence.causes import Cause
from tests.crash.script import words_of

if TYPE_CHECKING:
    from tests.crash.world import World

UNHEARD, UNSAID = "B2", "B3"
POINTS = ("message_received", "message_sending", "before_tool_call", "tool_result_persist", "agent_end")


def hooks_of(seen: Callable[[str, str], None]) -> Sequence[Hook]:
    """Make the hooks. seen: notes the point and the text of each event, as it is sent."""

    def made(point: str) -> Hook:
        async def call(event: HookEvent) -> Any:
            text = str(getattr(event, "body", getattr(event, "text", "")))
            seen(point, text)
            drops = point == "message_received" and text.startswith(UNHEARD)
            return {"block": True} if drops or (point == "message_sending" and f"{UNSAID}." in text) else None

        return Hook(point=point, name=point, call=call)

    return [made(point) for point in POINTS]


def check_hooked(world: "World") -> list[str]:
    """What was forbidden left a row with its cause and nothing else, and nothing was sent unasked."""
    if not world.hooked:
        return []
    asked = {text for point, text in world.seen_by_hooks if point == "message_sending"}
    bodies = [shown.body for shown in world.platform.shown if not shown.typing]
    wrong = [f"sent unasked: {body!r}" for body in bodies if body not in asked]
    wrong += [f"forbidden, and sent: {body!r}" for body in bodies if any(one == UNSAID for one, _ in words_of(body))]
    shown = [body for (body,) in world.stored.entries("body") if f"{UNHEARD} " in body]
    kept = [
        (state, reason)
        for state, reason, payload in world.stored.messages("state", "reason", "payload", kind="message")
        if json.loads(payload)["text"].startswith(UNHEARD)
    ]
    if shown or kept != [("dropped", Cause.HOOK.value)]:
        wrong.append(f"a message that was to be dropped is kept as {kept}, and shown as {shown}")
    for said, state, cause in world.stored.deliveries("said", "state", "cause"):
        if f"{UNSAID}." in said and (state, cause) != ("expired", Cause.HOOK.value):
            wrong.append(f"{said!r} was to be forbidden, and is {state}, {cause}")
    return wrong


def check_heard(world: "World") -> list[str]:
    """What was said in a voice message is told to who sent it, once, and to the model as their words."""
    wrong = []
    for update in world.platform.updates:
        if not update.voice:
            continue
        for (turn_id,) in world.stored.messages("turn_id", event_key=update.event_key, state="done"):
            lines = [
                body for (body,) in world.stored.entries("body", turn_id=turn_id) if "said in a voice message" in body
            ]
            told = [state for said, state in world.stored.deliveries("said", "state", turn_id=turn_id) if "🎙" in said]
            completed = world.stored.turns(turn_id=turn_id, outcome="completed")
            if len(lines) > 1 or len(told) > 1 or (completed and (len(lines), len(told)) != (1, 1)):
                wrong.append(f"the voice of {update.text!r} is heard as {lines}, and told as {told}")
    return wrong
