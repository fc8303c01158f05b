"""What is taken back while something else goes on: summaries, later messages, changes that wait to be told."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.context import Context
from agent.events import CompactionEnd
from agent.message import Message, Text
from bot.persistence.exchanges import Shown, Undone
from bot.persistence.turns import CommandKept, Turn
from bot.store.commands import NOT_ANEW
from bot.store.store import Store
from channels.message import InboundKind
from channels.outgoing import Planned
from tests.bot.persistence.contract import answer
from tests.bot.store.opened import KEY, accept, accept_and_claim, opened
from tests.stored import Stored


async def exchange(store: Store, text: str) -> Turn:
    """A question, and its answer."""
    turn = await accept_and_claim(store, text)
    await answer(store, turn)
    return turn


async def undo(store: Store, seq: int) -> tuple[CommandKept, list[Undone]]:
    """Take the newest exchange back by a command; what it was told to say."""
    told: list[Undone] = []

    def tell(undone: Undone) -> Sequence[Planned]:
        told.append(undone)
        return ()

    def take_off(shown: Shown) -> Sequence[Planned]:
        raise AssertionError(shown)

    return await store.exchanges.undo(seq, KEY, 1, take_off, tell, by_owner=True), told


async def summary(store: Store, turn: Turn, end: int, start: int) -> bool:
    """Store a summary of the lines before `start`, made when `end` was the newest line; whether it was taken."""
    event = CompactionEnd(run=turn.run, at=0, end=end, done=True)
    message = Message("user", (Text("a summary"),))
    return await store.compactions.ended(turn.transcript_id, message, start, 0, event) is not None


async def test_a_summary_that_was_made_meanwhile_of_what_is_taken_back_is_not_stored(store: Store) -> None:
    for text in ("one", "two", "three"):
        turn = await exchange(store, text)  # two lines each
    seq = await accept(store, "/undo", InboundKind.COMMAND)
    _, (undone,) = await undo(store, seq)
    assert undone.asked == ("three",)
    assert not await summary(store, turn, end=6, start=6)  # it has "three" in it
    assert await summary(store, turn, end=6, start=5)
    assert [line.message.text for line in await store.reads.context(turn.transcript_id)] == ["a summary"]


async def test_what_was_begun_after_the_command_is_left_alone(tmp_path: Path, store: Store) -> None:
    await exchange(store, "one")
    seq = await accept(store, "/undo", InboundKind.COMMAND)
    await accept_and_claim(store, "two")
    _, (undone,) = await undo(store, seq)
    assert undone.refused == "newer"
    assert Stored(tmp_path).turns("state") == [("done",), ("running",)]
    assert await undo(store, seq) == (NOT_ANEW, [])  # it was carried out before


async def test_a_command_that_was_found_in_a_history_takes_nothing_newer_back(tmp_path: Path, store: Store) -> None:
    await exchange(store, "one")
    seq = await accept(store, "/undo", InboundKind.COMMAND)
    Stored(tmp_path).spoil("UPDATE inbox SET sent_at=1, accepted_at=1000000 WHERE seq=?", seq)
    _, (undone,) = await undo(store, seq)
    assert undone.refused == "newer"


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.just(("say", 0)),
            st.tuples(st.just("undo"), st.integers(1, 3)),
            st.just(("redo", 0)),
            st.just(("fork", 0)),
        ),
        max_size=12,
    )
)
def test_what_the_model_is_shown_is_what_counts(orders: list[tuple[str, int]]) -> None:
    """Whatever is said, taken back, brought back and copied, in whatever order."""
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(_follow(Path(home), orders))


async def _follow(home: Path, orders: list[tuple[str, int]]) -> None:
    counts: list[int] = []  # the exchanges of the present transcript that count
    undone: list[list[int]] = []  # what each undo took back, the newest last
    async with opened(home) as store:
        for number, (name, count) in enumerate(orders):
            if name == "say":
                await exchange(store, f"question {number}")
                counts.append(number)
                continue
            seq = await accept(store, f"/{name}", InboundKind.COMMAND)
            if name == "undo":
                await store.exchanges.undo(seq, KEY, count, lambda shown: (), lambda undone: (), by_owner=True)
                if counts:
                    undone.append(counts[-count:])
                    del counts[-count:]
            elif name == "redo":
                await store.exchanges.redo(seq, KEY, lambda undone: (), by_owner=True)
                if undone and counts[-1:] < undone[-1][:1]:
                    counts += undone.pop()
            else:
                await store.forks.fork(seq, KEY, None, lambda forked: ())
                undone = undone if not counts else []
            found = await store.reads.prompt(KEY)
            assert found is not None
            lines = await store.reads.context(found[0])
            asked = [line.message.text for line in lines if line.kind == "user"]
            assert asked == [f"question {one}" for one in counts]
            assert len(lines) == 2 * len(counts)
            assert not lines or Context(lines).is_whole
