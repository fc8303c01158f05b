"""The book of messages balances: on three platforms, whatever fails, stops, is edited, deleted, asked or killed.

Two ways to it. `test_a_workload` draws what happens from a printed seed, restarts the service at drawn moments, and in
the end takes rows away, each of which the book must name. `TestBook` lets hypothesis find the order of events.
"""

import asyncio
import contextlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from agent.errors import ErrorKind
from agent.tools.base import Verdict
from tests.crash.platform import Fault, Platform, Update
from tests.crash.process import End, When
from tests.crash.test_state_machine import Bot
from tests.crash.world import World
from tests.examples import fewer

OTHERS = ("discord", "slack")
FAILURE = ErrorKind.INVALID_REQUEST
"""How the model fails: without a pause of hours, as for a key."""
PLATFORM_OF = {"A": 0, "B": 0, "C": 0, "D": 1, "E": 1, "F": 2, "G": 2}
"""By the chat, whose name also begins the scripts that are written there."""
MESSAGES, KILLS = 150, 6
_WAYS: tuple[When, ...] = ("before", "after", "effect", "drain")
SCRIPTS = (
    *("1p", "1p", "3p", "count | 1p", "1p+look | 2p+count | 1p", "2p+break", "4p+limit+count | 1p", "2p+nope+bad | 1p"),
    *("1p+stay_silent", "stay_silent", "1p+first+look | 2p", "1p+send | 1p", "ok", "1f+1p", "ask | 1p"),
    "1p+late | 1p",
)
COMMANDS = ("/stop", "/new", "/status", "/help", "/reset", "/help stop", "/whatever", "/compact", "/think high")
FAULTS: tuple[Fault, ...] = ("429", "not_ready", "answer_lost", "request_lost", "refused")
VERDICTS: tuple[Verdict, ...] = ("once", "denied", "always")


class People:
    """Who writes, edits, takes back, commands and decides in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._tokens: Counter[str] = Counter()

    def platform(self, chat: str) -> Platform:
        return self.world.platforms[PLATFORM_OF[chat]]

    def write(self, chat: str, what: str) -> None:
        if not what.startswith("/"):
            self._tokens[chat] += 1
            what = f"{chat}{self._tokens[chat]} {what}"
        self.platform(chat).write(chat, what)

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

    async def decide(self, verdict: Verdict) -> None:
        """Somebody decides about everything that is asked."""
        for (ident,) in self.world.stored.approvals("approval_id", state="open"):
            await self.world.decide(ident, verdict)

    async def rest(self) -> None:
        """Wait until everything is at rest; whatever is asked meanwhile is allowed."""

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
        match drawn.choices(("write", "command", "edit", "delete", "fail", "decide"), (60, 12, 8, 6, 9, 5))[0]:
            case "write":
                self.write(chat, drawn.choice(SCRIPTS))
            case "command":
                self.write(chat, drawn.choice(COMMANDS))
            case "edit":
                self.edit(chat, drawn.randrange(3), drawn.choice(SCRIPTS))
            case "delete":
                self.delete(chat, drawn.randrange(3))
            case "fail":
                self.platform(chat).fail_next(chat, drawn.choice(FAULTS))
            case "decide":
                await self.decide(drawn.choice(VERDICTS))


def unexplained(world: World) -> list[str]:
    """What the book does not explain; and at rest nothing is pending, and each message is in it."""
    book = world.stored.balance()
    asked = len(world.stored.messages("seq", kind={"message", "command", "button", "api"}))
    wrong = [f"not explained: {one}" for one in book.unexplained]
    wrong += [f"pending at rest: {account}" for account in book.accounts if account.pending]
    accepted = sum(account.accepted for account in book.accounts)
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
    await world.finish()


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


async def _workload(root: Path, seed: int, messages: int, kills: int) -> World:
    print(f"BALANCE_SEED={seed}")  # noqa: T201

    async def nobody(world: World) -> None:
        """The people act by themselves."""

    world = World(root, nobody, places=4, seed=seed, others=OTHERS, failure=FAILURE)
    try:
        async with asyncio.timeout(60 + messages / 5):
            await _work(world, Random(seed), messages, kills)
    except TimeoutError:
        raise AssertionError(f"seed {seed}: stuck: {_open(world)}") from None
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await world.bury()
    print(f"{world.lives} lives, {world.died} deaths")  # noqa: T201
    wrong = unexplained(world)
    assert not wrong, "\n".join([f"seed {seed}:", *wrong, _open(world)])
    assert len(world.stored.balance().accounts) == 3
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
    (1, "delivery", "SELECT delivery_id, seq FROM inbox JOIN delivery ON source='turn:' || inbox.turn_id || ':error'"),
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


async def test_a_workload_and_what_is_taken_away_from_it(fresh: Callable[[], Path]) -> None:
    seed = int(os.environ.get("BALANCE_SEED") or Random().randrange(100_000))
    world = await _workload(fresh(), seed, MESSAGES, KILLS)
    taken = take_away(world, Random(seed))
    found = world.stored.balance()
    assert sorted(int(one.message) for one in found.unexplained) == sorted(map(int, taken))
    assert len(taken) == 20
    world.close()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
async def test_ten_thousand_messages_and_sixty_kills(seed: int, fresh: Callable[[], Path]) -> None:
    world = await _workload(fresh(), seed, 10_000, 60)
    assert world.died + world.drained >= 60
    world.close()


class Book(Bot):
    """People of three platforms in any order that hypothesis thinks of; what must hold is that the book balances.

    The rules of freezing, of undoing and of the modes of the queue belong here.
    """

    others = OTHERS
    failure = FAILURE

    def __init__(self) -> None:
        super().__init__()
        self.people = People(self.world)

    def wrong(self) -> list[str]:
        return unexplained(self.world)

    @rule(chat=st.sampled_from("ADF"), what=st.sampled_from(SCRIPTS))
    def write_anywhere(self, chat: str, what: str) -> None:
        self.people.write(chat, what)

    @rule(chat=st.sampled_from("ADF"), command=st.sampled_from(COMMANDS))
    def command_anywhere(self, chat: str, command: str) -> None:
        self.people.write(chat, command)

    @rule(chat=st.sampled_from("ADF"), back=st.integers(0, 2), what=st.sampled_from(SCRIPTS))
    def edit(self, chat: str, back: int, what: str) -> None:
        self.people.edit(chat, back, what)

    @rule(chat=st.sampled_from("ADF"), back=st.integers(0, 2))
    def delete(self, chat: str, back: int) -> None:
        self.people.delete(chat, back)

    @rule(verdict=st.sampled_from(VERDICTS))
    def decide(self, verdict: Verdict) -> None:
        self._run(self.people.decide(verdict))

    async def _at_rest(self) -> None:
        await self.people.rest()


TestBook = Book.TestCase
TestBook.settings = settings(fewer(15), stateful_step_count=25, phases=[Phase.generate])
