"""The book of messages balances: on three platforms, whatever fails, stops, is edited, deleted, asked or killed.

Two ways to it. `test_a_workload` draws what happens from a printed seed, restarts the service at drawn moments, and in
the end forgets somebody and takes rows away, each of which the book must name. `TestBook` lets hypothesis find the
order of events.
"""

import asyncio
import contextlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from agent.errors import ErrorKind
from agent.tools.base import Verdict
from bot.store.forgetting import Whom
from channels.settings import QueueDrop, QueueMode
from heartbeat.schedule import At
from tests.crash.platform import Fault, Platform, Update
from tests.crash.process import End, When
from tests.crash.test_state_machine import Bot
from tests.crash.world import World
from tests.examples import fewer, seed

OTHERS = ("discord", "slack")
KINDS: dict[str, Any] = {
    "others": OTHERS,
    "failure": ErrorKind.INVALID_REQUEST,  # without a pause of hours, as for a key
    "background": {"every": "30m", "isolated": False, "light_context": False},
}
PLATFORM_OF = {"A": 0, "B": 0, "C": 0, "D": 1, "E": 1, "F": 2, "G": 2}
"""By the chat, whose name also begins the scripts that are written there."""
MESSAGES, KILLS = 150, 6
_WAYS: tuple[When, ...] = ("before", "after", "effect", "drain")
SCRIPTS = (
    *("1p", "1p", "3p", "count | 1p", "1p+look | 2p+count | 1p", "2p+break", "4p+limit+count | 1p", "2p+nope+bad | 1p"),
    *("1p+stay_silent", "stay_silent", "1p+first+look | 2p", "1p+send | 1p", "ok", "1f+1p", "ask | 1p"),
    *("1p+late | 1p", "2p+slow+count | 2p+slow", "3p+slow", "1p+look+slow | 1p+slow+count | 1p"),
)
COMMANDS = (
    *("/stop", "stop", "/new", "/new ...", "/status", "/help", "/reset", "/help stop", "/whatever", "/compact"),
    *("/think high", "/think high ...", "/retry", "/retry", "/undo", "/undo", "/undo 2", "/redo", "/redo", "/fork"),
    *("/queue", "/queue collect", "/queue steer", "/queue followup", "/queue interrupt", "/queue default"),
)
"""Those with dots end with what somebody writes."""
FREEZES = ("/freeze", "/freeze", "/freeze tools", "/freeze network", "/freeze beats")
OWNED = ("/thaw", "/heartbeat now", "/send off", "/send on", "/send default")
"""For the owner, who writes in chat A, as those that freeze."""
MODES: tuple[QueueMode, ...] = ("collect", "steer", "followup", "interrupt")
DROPS: tuple[QueueDrop, ...] = ("summarise", "old", "new")
FAULTS: tuple[Fault, ...] = ("429", "not_ready", "answer_lost", "request_lost", "refused")
VERDICTS: tuple[Verdict, ...] = ("once", "denied", "always")


ACTS = {
    "write": 40,
    "write several": 5,
    "command": 25,
    "own": 4,
    "wake": 3,
    "plan": 3,
    "submit": 4,
    "edit": 7,
    "ask anew": 3,
    "delete": 6,
    "fail": 9,
    "decide": 5,
}
"""What people do in the workload, and how often."""


class People:
    """Who writes, edits, takes back, commands and decides in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._tokens: Counter[str] = Counter()

    def platform(self, chat: str) -> Platform:
        return self.world.platforms[PLATFORM_OF[chat]]

    def script(self, chat: str, what: str) -> str:
        self._tokens[chat] += 1
        return f"{chat}{self._tokens[chat]} {what}"

    def write(self, chat: str, *what: str) -> None:
        self.platform(chat).write(chat, *(self.script(chat, one) for one in what))

    def command(self, chat: str, command: str) -> None:
        self.platform(chat).write(chat, command.replace("...", self.script(chat, "2p")))

    def own(self, chat: str, back: int) -> Update | None:
        """A message that was written in a chat, and not taken back."""
        updates = self.platform(chat).updates
        gone = {update.deletes for update in updates}
        mine = [one for one in updates if one.chat == chat and not (one.edits or one.deletes or one.update_id in gone)]
        return mine[-1 - back] if back < len(mine) else None

    def edit(self, chat: str, back: int, what: str) -> None:
        if (original := self.own(chat, back)) is not None and not original.text.startswith("/"):
            self.platform(chat).edit(original, f"{original.text.split()[0]} {what}")

    def delete(self, chat: str, back: int) -> None:
        if (original := self.own(chat, back)) is not None:
            self.platform(chat).delete(original)

    def ask_anew(self, chat: str, what: str) -> None:
        """The newest message is edited, and its answer is asked for again."""
        self.edit(chat, 0, what)
        if (original := self.own(chat, 0)) is not None:
            self.platform(chat).write(chat, f"/reanswer {original.update_id}")

    async def wake(self, what: str) -> None:
        """A program lets the assistant beat."""
        self.world.checklist(self.script("A", what))
        await self.world.wake("It is time.")

    async def submit(self, what: str) -> None:
        """A program posts a script or a command."""
        text = what if what.startswith("/") else self.script("P", what)
        self._tokens["posted"] += 1
        await self.world.submit("P", f"key {self._tokens['posted']}", text)

    async def plan(self, what: str, *, own: bool) -> None:
        """The owner is to be reminded in a minute."""
        text = self.script("J" if own else "A", what)
        await self.world.plan(text.split()[0], At(self.world.now() + 60_000), text, own=own)

    async def decide(self, verdict: Verdict) -> None:
        """Somebody decides about everything that is asked."""
        for (ident,) in self.world.stored.approvals("approval_id", state="open"):
            await self.world.decide(ident, verdict)

    async def rest(self) -> None:
        """Wait until everything is thawed and at rest; whatever is asked meanwhile is allowed."""
        self.command("A", "/thaw")

        async def allow() -> None:
            while True:
                await self.decide("once")
                await asyncio.sleep(0.01)

        deciding = asyncio.create_task(allow(), name="person")
        try:
            await self.world.rest()
        finally:
            deciding.cancel()
            await asyncio.gather(deciding, return_exceptions=True)

    async def act(self, drawn: Random) -> None:
        """Do one thing."""
        chat = drawn.choice([*PLATFORM_OF])
        match drawn.choices([*ACTS], [*ACTS.values()])[0]:
            case "write":
                self.write(chat, drawn.choice(SCRIPTS))
            case "write several":
                self.write(chat, *drawn.choices(SCRIPTS, k=drawn.randint(2, 6)))
            case "command":
                self.command(chat, drawn.choice(COMMANDS))
            case "own":
                self.command("A", drawn.choice((*FREEZES, *OWNED, "/thaw", "/thaw")))
            case "wake":
                await self.wake(drawn.choice(SCRIPTS))
            case "submit":
                await self.submit(drawn.choice((*SCRIPTS, *COMMANDS[:3])))
            case "plan":
                await self.plan(drawn.choice(SCRIPTS), own=drawn.random() < 0.5)
            case "edit":
                self.edit(chat, drawn.randrange(3), drawn.choice(SCRIPTS))
            case "ask anew":
                self.ask_anew(chat, drawn.choice(SCRIPTS))
            case "delete":
                self.delete(chat, drawn.randrange(3))
            case "fail":
                self.platform(chat).fail_next(chat, drawn.choice(FAULTS))
            case "decide":
                await self.decide(drawn.choice(VERDICTS))


def unexplained(world: World) -> list[str]:
    """What the book does not explain; and at rest nothing is pending, and each message is in it."""
    book = world.stored.balance()
    there = {platform.name for platform in world.platforms}  # what programs post is deleted after a day
    asked = len(world.stored.messages("seq", kind={"message", "command", "button"}, channel=there))
    wrong = [f"not explained: {one}" for one in book.unexplained]
    wrong += [f"pending at rest: {account}" for account in book.accounts if account.pending]
    accepted = sum(one.accepted for one in book.accounts if one.account.split(":")[0] in there)
    return wrong + ([] if accepted == asked else [f"{accepted} in the book, {asked} in the inbox"])


async def _happens(people: People, drawn: Random, messages: int) -> None:
    """So many things, one after the other."""
    for _ in range(messages):
        await people.act(drawn)
        await people.world.goes_on(drawn.choice((0, 3, 10, 30, 60)))


async def _work(world: World, drawn: Random, messages: int, kills: int) -> None:
    """So many things happen in a world, whose service ends so often meanwhile: killed, or stopped in order."""
    people = People(world)
    world.person_done()
    happening: asyncio.Task[None] | None = None
    ends = [End(drawn.choice(_WAYS), drawn.randint(1, 8 * messages // kills)) for _ in range(kills)]
    for end in ends:
        process, _ = world.begin(end)
        happening = happening or asyncio.create_task(_happens(people, Random(drawn.random()), messages), name="person")
        ended = asyncio.create_task(process.ended.wait(), name="ended")
        await asyncio.wait((happening, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not process.ended.is_set():
            process.die()
        await world.finish()
    world.begin()
    await happening
    await world.up()
    await people.rest()
    wrong = unexplained(world)
    assert not wrong, "\n".join([*wrong, *_about(world), _open(world)])
    await _forget(world, drawn.choice("BC"))
    await world.finish()


async def _forget(world: World, chat: str) -> None:
    """Old transcripts are deleted, and somebody is forgotten; what the book has counted stays so."""
    assert world.service is not None
    accepted = sum(one.accepted for one in world.stored.balance().accounts)
    await world.service.parts.sessions.prune(None, 1)
    forgetting = world.service.parts.store.forgetting
    whom = Whom("telegram", chat, frozenset({f"agent:main:telegram:direct:{chat}"}), frozenset())
    await forgetting.begin(whom)
    await forgetting.rows(whom, lambda session_key, message, number: "")
    assert not world.stored.messages("seq", channel="telegram", sender=chat)
    book = world.stored.balance()
    assert not book.unexplained, [*book.unexplained, *_about(world)]
    assert sum(one.accepted for one in book.accounts) == accepted


def _open(world: World) -> str:
    """What is open, for the message of a failed test."""
    stored, open_states = world.stored, {"queued", "running", "parked", "waiting", "steering", "taken", "planned"}
    found = (
        stored.messages("seq", "state", "kind", "turn_id", "payload", state=open_states),
        stored.turns("turn_id", "state", "session_key", "misses", state=open_states),
        stored.deliveries("source", "state", "not_before", "error", state={"planned", "sending", "unknown"}),
        stored.approvals("approval_id", "state", told=0),
        [(one.name, one.confirmed, one.updates[one.confirmed :]) for one in world.platforms],
    )
    return "\n".join(map(str, found))


def _about(world: World) -> Iterator[str]:
    """The rows of what is not explained."""
    stored = world.stored
    for one in stored.balance().unexplained:
        for seq, turn_id, *message in stored.messages(
            *("seq", "turn_id", "state", "reason", "kind", "told", "payload"), seq=one.message
        ):
            yield f"{seq}: {message}"
            yield f"  {stored.turns('state', 'silent', 'error_kind', 'error_message', 'told', turn_id=turn_id)}"
            columns = ("delivery_id", "source", "action", "state", "cause", "error", "said")
            yield from (f"  {row}" for row in stored.deliveries(*columns, turn_id=turn_id))


async def _workload(root: Path, seed: int, messages: int, kills: int) -> World:
    async def nobody(world: World) -> None:
        """The people act by themselves."""

    drawn = Random(-seed)
    rule = {"mode": drawn.choice(MODES), "cap": drawn.randint(2, 5), "drop": drawn.choice(DROPS)}
    print(f"BALANCE_SEED={seed} {rule}")  # noqa: T201
    world = World(root, nobody, places=4, seed=seed, preview=drawn.random() < 0.5, **KINDS | rule)
    try:
        async with asyncio.timeout(60 + messages / 5):
            await _work(world, Random(seed), messages, kills)
    except TimeoutError:
        raise AssertionError(f"stuck: {_open(world)}") from None
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await world.bury()
    print(f"{world.lives} lives, {world.died} deaths")  # noqa: T201
    assert {one.account.split(":")[0] for one in world.stored.balance().accounts} >= {"telegram", *OTHERS}
    return world


_ONE = "SELECT turn_id FROM inbox GROUP BY turn_id HAVING count(*)=1"
_ANSWERED = f"state='done' AND kind='message' AND turn_id IN ({_ONE})"
TAKEN_AWAY = (
    (3, "inbox", f"SELECT seq, seq FROM inbox WHERE {_ANSWERED}"),
    (2, "inbox", "SELECT seq, seq FROM inbox WHERE state='dropped' AND kind='message'"),
    (2, "inbox", "SELECT seq, seq FROM inbox WHERE state='done' AND kind='command'"),
    (5, "turn", f"SELECT turn_id, seq FROM inbox WHERE {_ANSWERED}"),
    (
        4,
        "delivery",
        "SELECT max(delivery_id), seq FROM inbox JOIN delivery USING (turn_id) WHERE delivery.state='sent'"
        f" AND inbox.{_ANSWERED} GROUP BY seq",
    ),
    (2, "delivery", "SELECT delivery_id, seq FROM inbox JOIN delivery ON source='cmd:' || seq WHERE kind='command'"),
    (
        1,
        "delivery",
        "SELECT delivery_id, seq FROM inbox JOIN delivery ON source='turn:' || inbox.turn_id || ':error'"
        f" WHERE inbox.kind='message' AND inbox.turn_id IN ({_ONE})",
    ),
    (20, "inbox", f"SELECT seq, seq FROM inbox WHERE {_ANSWERED}"),
)
"""How many rows of which table at most, by a query for their keys and the messages that they belong to."""
_KEYS = {"inbox": "seq", "turn": "turn_id", "delivery": "delivery_id"}


def take_away(world: World, drawn: Random) -> list[str]:
    """Take twenty rows away, each of another message; return the names of the messages."""
    named: list[int] = []
    with contextlib.closing(sqlite3.connect(world.root / "state" / "hark.db", isolation_level=None)) as database:
        for count, table, query in TAKEN_AWAY:
            found = [row for row in database.execute(query).fetchall() if row[1] not in named]
            for key, seq in drawn.sample(found, min(count, len(found), 20 - len(named))):
                assert database.execute(f"DELETE FROM {table} WHERE {_KEYS[table]}=?", (key,)).rowcount == 1
                named.append(seq)
    return [str(seq) for seq in sorted(named)]


@pytest.mark.waits
async def test_a_workload_and_what_is_taken_away_from_it(fresh: Callable[[], Path]) -> None:
    """Waits for what the libraries of the platforms do by themselves."""
    drawn = int(os.environ.get("BALANCE_SEED") or seed("balance", 100_000))
    world = await _workload(fresh(), drawn, MESSAGES, KILLS)
    taken = take_away(world, Random(drawn))
    found = world.stored.balance()
    others = [one for one in found.unexplained if one.message not in taken]
    assert {one.message for one in found.unexplained} == {*taken}, others
    assert len(taken) == 20
    world.close()


@pytest.mark.soak
@pytest.mark.parametrize("number", range(3))
async def test_ten_thousand_messages_and_sixty_kills(number: int, fresh: Callable[[], Path]) -> None:
    world = await _workload(fresh(), number, 10_000, 60)
    assert world.died + world.drained >= 60
    world.close()


class Book(Bot):
    """People of three platforms in any order that hypothesis thinks of; what must hold is that the book balances."""

    kinds: ClassVar[dict[str, Any]] = KINDS | {"cap": 3}

    def __init__(self) -> None:
        super().__init__()
        self.people = People(self.world)
        self.ahead = 0

    def wrong(self) -> list[str]:
        return unexplained(self.world)

    @rule(chat=st.sampled_from("ADF"), what=st.lists(st.sampled_from(SCRIPTS), min_size=1, max_size=5))
    def write_anywhere(self, chat: str, what: list[str]) -> None:
        self.people.write(chat, *what)

    @rule(chat=st.sampled_from("ADF"), command=st.sampled_from(COMMANDS))
    def command_anywhere(self, chat: str, command: str) -> None:
        self.people.command(chat, command)

    @rule(command=st.sampled_from((*FREEZES, *OWNED)))
    def command_of_the_owner(self, command: str) -> None:
        self.people.command("A", command)

    @rule(what=st.sampled_from(SCRIPTS))
    def wake(self, what: str) -> None:
        self._run(self.people.wake(what))

    @rule(what=st.sampled_from((*SCRIPTS, *COMMANDS[:3])))
    def submit(self, what: str) -> None:
        self._run(self.people.submit(what))

    @rule(what=st.sampled_from(SCRIPTS), own=st.booleans())
    def plan(self, what: str, own: bool) -> None:
        self._run(self.people.plan(what, own=own))

    @rule(chat=st.sampled_from("ADF"), back=st.integers(0, 2), what=st.sampled_from(SCRIPTS))
    def edit(self, chat: str, back: int, what: str) -> None:
        self.people.edit(chat, back, what)

    @rule(chat=st.sampled_from("ADF"), what=st.sampled_from(SCRIPTS))
    def ask_anew(self, chat: str, what: str) -> None:
        self.people.ask_anew(chat, what)

    @rule(chat=st.sampled_from("ADF"), back=st.integers(0, 2))
    def delete(self, chat: str, back: int) -> None:
        self.people.delete(chat, back)

    @rule(verdict=st.sampled_from(VERDICTS))
    def decide(self, verdict: Verdict) -> None:
        self._run(self.people.decide(verdict))

    @rule(count=st.integers(1, 40))
    def go_on(self, count: int) -> None:
        self._run(self.world.goes_on(count))  # nothing happens while all is frozen

    @rule(hours=st.sampled_from((-1, 1)))
    def clock(self, hours: int) -> None:
        super().clock(hours)
        self.ahead = max(self.ahead, self.world.skew)

    async def _at_rest(self) -> None:
        self.world.skew = self.ahead  # what was planned then comes
        await self.people.rest()


TestBook = Book.TestCase
TestBook.settings = settings(fewer(6), stateful_step_count=25, phases=[Phase.generate])
