"""What people do, in a dozen scenarios. Each waits only for what can be seen from outside."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.tools.base import Verdict
from channels.message import ChatKind, Place
from channels.settings import QueueMode
from tests.crash.world import World


@dataclass(frozen=True, slots=True)
class Scenario:
    """name: of the test. person: what people do. pace: seconds between two messages into one chat.

    timeout: seconds that a run may take. debounce: milliseconds for which a message waits for more. listening: on a
    platform that tells everything once. preview: answers grow in messages that are edited. mode, background,
    hooked, served, tokens and disk: see World.
    """

    name: str
    person: Callable[[World], Awaitable[None]]
    pace: float = 0.0
    timeout: float = 6000.0
    debounce: int = 0
    listening: bool = False
    preview: bool = False
    mode: QueueMode = "followup"
    tokens: int | None = None
    disk: int | None = None
    background: dict[str, Any] | None = None
    hooked: bool = False
    served: bool = False

    def world(self, root: Path) -> World:
        """A fresh world for it."""
        return World(
            root,
            self.person,
            pace=self.pace,
            timeout_seconds=self.timeout,
            debounce=self.debounce,
            listening=self.listening,
            preview=self.preview,
            mode=self.mode,
            tokens=self.tokens,
            disk=self.disk,
            background=self.background,
            hooked=self.hooked,
            served=self.served,
        )


def writes(*texts: str) -> Callable[[World], Awaitable[None]]:
    async def person(world: World) -> None:
        for text in texts:
            world.platform.write("A", text)

    return person


async def _compact(world: World) -> None:
    for number in (1, 2, 3):
        world.platform.write("A", f"A{number} 1p+count")
        await world.until(lambda number=number: said(world, f"A{number}.0"))  # type: ignore[misc]
    world.platform.write("A", "/compact what was counted")
    await world.until(lambda: said(world, "is summed up"))
    world.platform.write("A", "A4 2p+count | 1p")


async def _over_budget(world: World) -> None:
    world.platform.write("A", "A1 1p+count | 2p+count | 1p")
    await world.until(lambda: bool(world.stored.turns(state="parked")))
    world.platform.write("A", "/budget more")


async def _spawn(world: World) -> None:
    """Two sub-agents, and somebody who writes meanwhile."""
    world.platform.write("A", "A1 1p+spawn+count | 1p+spawn | 1p")
    await world.until(lambda: said(world, "A1.8"))
    world.platform.write("A", "A2 1p+look | 1p")


async def _around(world: World, script: str, until: str) -> None:
    """B has a conversation, A runs a script, and B writes again once a word of that was said."""
    world.platform.write("B", "B1 1p")
    await world.until(lambda: said(world, "B1.8"))
    world.platform.write("A", script)
    await world.until(lambda: said(world, until))
    world.platform.write("B", "B2 1p")


async def _relay(world: World) -> None:
    """Something is said in another session, where somebody writes meanwhile."""
    await _around(world, "A1 1p+relay+count | 1p+relay | 1p", "A1.8")


async def _again(world: World) -> None:
    """A sub-agent is told more while it works, and again when it has ended."""
    world.platform.write("A", "A1 1p+spawn | 1p+again | 1p")
    await world.until(lambda: said(world, "A1.26"))
    world.platform.write("A", "A2 1p+again | 1p")


async def _stop_spawned(world: World) -> None:
    world.platform.write("A", "A1 1p+spawn | 1p+spawn+count | 2p+hold")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.write("A", "/stop")
    await world.until(lambda: said(world, "top") or said(world, "Nothing"))
    world.open_gate("A1")
    world.platform.write("A", "A3 1p")


async def _stop(world: World) -> None:
    world.platform.write("A", "A1 1p+count | 4p+hold")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.write("A", "A2 1p", "/stop")
    await world.until(lambda: said(world, "top") or said(world, "Nothing"))
    world.open_gate("A1")
    world.platform.write("A", "A3 1p")


async def _freeze(world: World) -> None:
    world.platform.write("A", "A1 1p+count | 3p+hold+count+look | 2p")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.write("A", "A2 1p", "/freeze", "A3 1p")
    await world.until(lambda: said(world, "Everything is frozen"))
    world.open_gate("A1")
    world.platform.write("A", "/thaw")


async def _freeze_tools(world: World) -> None:
    world.platform.write("A", "A1 2p+hold+count | 1p+look | 1p", "A2 1p")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.write("A", "/freeze tools")
    await world.until(lambda: said(world, "Tools are frozen"))
    world.open_gate("A1")
    await world.until(lambda: said(world, "What you wrote is kept"))
    world.platform.write("A", "/thaw")


async def _new(world: World) -> None:
    world.platform.write("A", "A1 1p")
    await world.until(lambda: said(world, "A1.8"))
    world.platform.write("A", "A2 3p+hold")
    await world.until(lambda: world.held["A2"] > 0)
    world.platform.write("A", "A3 1p", "A4 1p", "/new", "A5 1p")
    await world.until(lambda: said(world, "New"))
    world.open_gate("A2")


async def _undo(world: World) -> None:
    """Of an exchange that is over and of one under way; a message that waits behind it is dropped."""
    world.platform.write("A", "A1 1p+count | 1p")
    await world.until(lambda: bool(world.stored.turns(state="done")))
    world.platform.write("A", "/undo")
    await world.until(lambda: said(world, "taken back"))
    world.platform.write("A", "A2 1p+count | 4p+hold")
    await world.until(lambda: world.held["A2"] > 0)
    world.platform.write("A", "A3 1p", "/undo")
    await world.until(lambda: len(world.stored.undone()) > 1)
    world.open_gate("A2")
    world.platform.write("A", "A4 1p", "/redo")


async def _status(world: World) -> None:
    world.platform.write("A", "A1 3p+hold")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.write("A", "A2 1p", "/status")
    await world.until(lambda: said(world, "Model"))
    world.open_gate("A1")


async def _waiting(world: World) -> None:
    world.platform.write("A", "A1 2p", "A2 1p", "A3 count | 1p")


async def _sessions(world: World) -> None:
    for chat in "ABC":
        world.platform.write(chat, f"{chat}1 2p")
    world.platform.write("A", "A2 1p+look | 1p")
    world.platform.write("D", "D1 1p")
    world.platform.write("E", "E1 1p", "/help")


async def _steer(world: World) -> None:
    turn = await world.submit("x", "k1", "A1 2p+hold+count | 2p")
    await world.until(lambda: world.held["A1"] > 0)
    await world.steer(turn.turn_id, "A2 also")
    world.open_gate("A1")


async def _steer_waiting(world: World) -> None:
    world.platform.write("A", "A1 2p+hold+count | 2p")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.write("A", "A2 also")
    await world.until(lambda: world.has(world.platform.updates[-1]))
    await world.steer_waiting(world.platform.updates[-1])


async def _steered(world: World) -> None:
    await _steer_waiting(world)
    world.open_gate("A1")


async def _stop_steered(world: World) -> None:
    await _steer_waiting(world)
    world.platform.write("A", "/stop", "A3 1p")
    await world.until(lambda: said(world, "top") or said(world, "Nothing"))
    world.open_gate("A1")


def _meanwhile(*texts: str) -> Callable[[World], Awaitable[None]]:
    """Texts that are written while a run is active."""

    async def person(world: World) -> None:
        world.platform.write("A", "A1 2p+hold+count+look | 2p")
        await world.until(lambda: world.held["A1"] > 0)
        for text in texts:
            world.platform.write("A", text)
            await world.until(lambda: world.has(world.platform.updates[-1]))
        world.open_gate("A1")

    return person


async def _later(world: World) -> None:
    await world.later("x", "X1 2p", 40)
    await world.later("x", "X2 1p", 20)
    world.platform.write("A", "A1 1p")
    await world.submit("x", "k1", "X3 1p")


async def _http(world: World) -> None:
    await world.submit("x", "k1", "A1 2p+count | 2p")
    await world.submit("x", "k2", "A2 1p")
    await world.submit("x", "k1", "A1 2p+count | 2p")
    await world.submit("x", "k3", "/help")


async def _limited(world: World) -> None:
    world.platform.fail_next("A", "429", "429")
    world.platform.write("A", "A1 4p")


async def _doubtful(world: World) -> None:
    world.platform.fail_next("A", "answer_lost", "request_lost", "not_ready")
    world.platform.write("A", "A1 4p")


async def _never_known(world: World) -> None:
    world.platform.fail_next("A", "answer_lost", "request_lost", "answer_lost")
    world.platform.write("A", "A1 4p", "A2 1p")


async def _refused(world: World) -> None:
    world.platform.fail_next("A", "refused")
    world.platform.write("A", "A1 1p", "A2 1p")


async def _edit(world: World) -> None:
    world.platform.write("A", "A1 2p+hold")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.write("A", "A2 1p")
    world.platform.edit(world.platform.updates[-1], "A2 3p")
    await world.until(lambda: world.has(world.platform.updates[-1]))
    world.open_gate("A1")


async def _edit_late(world: World) -> None:
    world.platform.write("A", "A1 2p+hold+count | 1p")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.edit(world.platform.updates[-1], "A2 3p")
    await world.until(lambda: world.has(world.platform.updates[-1]))
    world.open_gate("A1")


async def _voice(world: World) -> None:
    world.platform.write("A", "A1 1p+count | 1p", voice=True)
    world.platform.write("A", "A2 1p", file=True, voice=True)


async def _files(world: World) -> None:
    world.platform.write("A", "A1 2p+count | 1p", file=True)
    world.platform.write("A", "A2 1p")


async def _full(world: World) -> None:
    """A guest sends more files than may be kept, each once the one before is told of."""
    for number in range(1, 7):
        world.platform.write("B", f"B{number} 1p", file=True)
        await world.until(lambda number=number: said(world, f"B{number}.0"))  # type: ignore[misc]


async def _move(world: World) -> None:
    world.platform.write("A", "A1 4p+hold", "A2 1p")
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.move("A", "B")
    world.open_gate("A1")


async def _console(world: World) -> None:
    place = Place(channel="console", account="", chat="local", kind=ChatKind.CONSOLE)
    await world.submit("", "k1", "A1 4p+count | 2p", place)
    await world.submit("", "k2", "/status", place)
    await world.submit("", "k3", "A2 1p", place)


async def _messages(world: World) -> None:
    """Sent by the model besides its answer, here and elsewhere, where somebody then writes again."""
    await _around(world, "A1 1p+tell+look+mail | 1p+mail | 1p", "A1.26")


async def _messages_limited(world: World) -> None:
    world.platform.fail_next("A", "429", "answer_lost")
    world.platform.fail_next("B", "not_ready")
    await _messages(world)


async def _remember(world: World) -> None:
    """One memory that is kept at once and taken back, and two that wait: one is kept, one dropped."""
    workspace = world.root / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "letter.txt").write_text("Remember this.")
    world.platform.write("A", "A1 1p+remember | 1p+letter | 1p+remember+remember | 1p")
    await world.until(lambda: bool(world.stored.turns(state="done")))
    waiting = [ident for (ident,) in world.stored.memories("memory_id", state="pending")]
    kept = [ident for (ident,) in world.stored.memories("memory_id", state="kept")]
    orders = [f"/memory {order} {ident}" for order, ident in zip(("keep", "drop"), waiting, strict=False)]
    world.platform.write("A", *orders, *(f"/memory drop {ident}" for ident in kept), "A2 1p")


async def _timed_out(world: World) -> None:
    world.platform.write("A", "A1 4p+hold")  # and nobody opens the gate
    await world.until(lambda: world.held["A1"] > 0)
    world.platform.write("A", "A2 1p")


def _decides(text: str, *verdicts: Verdict) -> Callable[[World], Awaitable[None]]:
    """Everything that is asked is decided, by several people at once."""

    async def person(world: World) -> None:
        world.platform.write("A", text, "A2 1p")
        while await asked(world):
            ((ident,),) = world.stored.approvals("approval_id", state="open")
            people = [asyncio.create_task(world.decide(ident, verdict), name="person") for verdict in verdicts]
            won = await asyncio.gather(*people)
            if won.count(True) > 1:
                world.violations.append(f"several decisions about {ident}")

    return person


def _types(text: str, *orders: str) -> Callable[[World], Awaitable[None]]:
    """Everything that is asked is decided by commands, all of them in one poll."""

    async def person(world: World) -> None:
        world.platform.write("A", text, "A2 1p")
        while await asked(world):
            ((ident,),) = world.stored.approvals("approval_id", state="open")
            world.platform.write("A", *(order.format(ident[:8]) for order in orders))
            await world.until(lambda ident=ident: not world.stored.approvals(approval_id=ident, state="open"))  # type: ignore[misc]

    return person


async def _asks_again(world: World) -> None:
    """What expired is asked again, twice at once, and then allowed, as often as people like."""
    world.platform.write("A", "A1 1p+late+look | 2p")
    await world.until(lambda: bool(world.stored.approvals(state="expired") or world.stored.turns(state="failed")))
    if not world.stored.approvals(state="expired"):
        return  # it was given up before anybody was asked
    ((ident,), *_) = world.stored.approvals("approval_id", state="expired")
    world.platform.write("A", f"/approve {ident} again", f"/approve {ident} again")
    await world.until(lambda: len(world.stored.approvals()) > 1)
    for (fresh,) in world.stored.approvals("approval_id", state="open"):
        world.platform.write("A", f"/approve {ident} once", f"/approve {fresh} once", f"/approve {fresh} once")
    world.platform.write("A", "A2 1p")


async def _stop_parked(world: World) -> None:
    world.platform.write("A", "A1 1p+look+ask | 1p", "A2 1p")
    await asked(world)
    world.platform.write("A", "/stop", "A3 1p")


async def asked(world: World) -> bool:
    """Whether a person is asked something, once that is so or nothing happens any more."""
    await world.until(lambda: bool(world.stored.approvals(state="open")))
    return bool(world.stored.approvals(state="open"))


async def _missed(world: World) -> None:
    """Told, missed, told behind what is missed: in two chats, and with a stop that is missed as well."""
    platform = world.platform
    platform.write("A", "A1 1p")
    await world.until(lambda: world.has(platform.updates[0]))
    platform.disconnect(deaf=True)
    platform.write("A", "A2 1p", "/stop", "A3 2p", "A4 1p")
    platform.write("B", "B1 1p", "B2 1p")
    platform.disconnect(deaf=False)
    platform.write("A", "A5 1p")
    platform.write("B", "B3 1p")


def said(world: World, text: str) -> bool:
    return any(text in shown.body for shown in world.platform.shown)


SCENARIOS = (
    Scenario("plain", writes("A1 1p")),
    Scenario("blocks", writes("A1 5p")),
    Scenario("tools", writes("A1 count+count+look+look+count | 2p")),
    Scenario("tool-then-text", writes("A1 2p+count | 2p+look+bad+nope | 1p")),
    Scenario("stop", _stop),
    Scenario("spawn", _spawn),
    Scenario("relay", _relay),
    Scenario("again", _again),
    Scenario("stop-spawned", _stop_spawned),
    Scenario("spawn-asks", _decides("A1 1p+spawn+ask | 1p", "once")),
    Scenario("freeze", _freeze),
    Scenario("freeze-tools", _freeze_tools),
    Scenario("new", _new),
    Scenario("undo", _undo),
    Scenario("status", _status),
    Scenario("compact", _compact),
    Scenario("over-budget", _over_budget, tokens=5000),
    Scenario("waiting", _waiting),
    Scenario("sessions", _sessions),
    Scenario("broken-after-text", writes("A1 4p+break")),
    Scenario("broken-before-text", writes("A1 1p+break", "A2 1p")),
    Scenario("limit-of-output", writes("A1 4p+limit+count | 1p")),
    Scenario("steer", _steer),
    Scenario("steer-waiting", _steered),
    Scenario("stop-steered", _stop_steered),
    Scenario("meanwhile-collect", _meanwhile("A2 1p", "A3 2p+count | 1p", "A4 1p"), mode="collect"),
    Scenario("meanwhile-steer", _meanwhile("A2 also", "A3 also"), mode="steer"),
    Scenario("meanwhile-interrupt", _meanwhile("A2 1p+count | 2p", "A3 1p"), mode="interrupt"),
    Scenario("later", _later),
    Scenario("http", _http),
    Scenario("limited", _limited),
    Scenario("doubtful", _doubtful),
    Scenario("never-known", _never_known),
    Scenario("refused", _refused),
    Scenario("edit", _edit),
    Scenario("edit-late", _edit_late),
    Scenario("gathered", writes("A1 2p+count | 1p", "A2 also"), debounce=1000),
    Scenario("files", _files),
    Scenario("too-many-files", _full, disk=26_000),
    Scenario("voice", _voice),
    Scenario("hooks", writes("A1 2p+count+look | 1p", "B2 1p", "B3 2p", "A4 1p"), hooked=True),
    Scenario("server", writes("A1 m_count | m_die+m_count | 1p"), served=True),
    Scenario("move", _move),
    Scenario("console", _console),
    Scenario("missed", _missed, listening=True),
    Scenario("timed-out", _timed_out, timeout=0.05),
    Scenario("decided-at-once", _decides("A1 ask+ask | 1p", "once", "denied", "always")),
    Scenario("nobody-decides", writes("A1 1p+late+look | 2p", "A2 1p")),
    Scenario("stop-parked", _stop_parked),
    Scenario("typed", _types("A1 1p+look+ask+count | 2p", "/approve {} once", "/approve {} once", "/approve {} deny")),
    Scenario("answered", _types("A1 1p+query+look | 1p+query | 1p", "/answer {} 2", "/answer {} 1")),
    Scenario("asks-again", _asks_again),
    Scenario("sends", writes("A1 1p+send+look | 1p+send | 1p")),
    Scenario("silent", writes("A1 2p+look | stay_silent+look", "A2 1p")),
    Scenario("messages", _messages),
    Scenario("messages-limited", _messages_limited),
    Scenario("said-first", writes("A1 1p+first+look | 2p", "A2 first | 1p", "A3 1p")),
    Scenario("preview", writes("A1 1p+slow+look | 3p+slow", "A2 2p"), preview=True),
    Scenario("preview-broken", writes("A1 3p+slow+break+count | 2p", "A2 1p"), preview=True),
    Scenario("preview-left-out", writes("A1 1p+first | 2p+slow", "A2 2p+look | stay_silent", "A3 1p"), preview=True),
    Scenario("remember", _remember),
    Scenario("paced", writes("A1 3p", "A2 1p"), pace=2.0),
)
