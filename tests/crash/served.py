"""An MCP server in a world that dies, which falls over in the middle of a call as well: no call of it is made twice."""

from collections import Counter
from typing import TYPE_CHECKING

from agent.context import INTERRUPTED, NOT_EXECUTED
from tests.bot.mcp.house import StandIn

if TYPE_CHECKING:
    from tests.crash.world import World

SERVER = "m"
TOOLS = ({"name": "count"}, {"name": "die", "does": {"exit": 3}})
_LOST = "whose outcome is unknown"


def check_served(world: "World") -> list[str]:
    """Each call reached the server at most once, what the model was told of it is so, and no process is left."""
    if world.server is None:
        return []
    made = Counter(one["params"]["arguments"]["key"] for one in world.server.calls)
    results, wrong = world.stored.results(), list[str]()
    if not (world.died or world.drained or world.failed_commits) and len(made) != 3:
        wrong.append(f"nothing happened, and these were called: {made}")
    for call_id, name, state in world.stored.calls("call_id", "name", "state"):
        if not name.startswith(f"{SERVER}_"):
            continue
        (text,), count = results[call_id], made.pop(call_id, 0)
        if count > 1:
            wrong.append(f"{call_id} was made {count} times")
        if count and text != INTERRUPTED and state != "done" and _LOST not in text:
            wrong.append(f"{call_id} was made, is {state}, and is told as {text!r}")
        if not count and (state == "done" or _LOST in text):
            wrong.append(f"{call_id} was not made, is {state}, and is told as {text!r}")
        if text == NOT_EXECUTED and count:
            wrong.append(f"{call_id} was made, and is told as not executed")
    wrong += [f"{call_id} was made, and nobody knows of it" for call_id in made]
    return wrong + [f"process {pid} of the server is left" for pid in world.server.running()]


def server_of(world: "World") -> StandIn | None:
    """Make the server, for a world that has one."""
    return StandIn(world.root / "mcp", *TOOLS) if world.served else None
