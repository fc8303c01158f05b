"""What comes during a run is collected, joins it, waits, or ends it, and what is beyond the cap is dropped and told."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.events import CompactionEnd, CompactionStart
from agent.message import Text, ToolCall
from bot.clock import Clock
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import AcceptedMessage, Fresh, QueueRule
from bot.persistence.turns import Turn, TurnState
from bot.store.store import Store
from channels.message import Attachment, InboundKind, InboundMessage, Place
from channels.outgoing import Planned
from channels.sources import Source, sentence
from tests.bot.store.opened import KEY, accept, answering, claim, fail, message, opened, whole
from tests.stored import Stored
from tests.watch import ManualTime, Watch


def tells(source: Source, place: Place, what: str) -> tuple[Planned, ...]:
    """One block that names what is told, and where."""
    return (Planned(source=source, body=f"{what} {place.chat}", nonce=0),)


RULE = QueueRule(mode="collect", cap=20, drop="summarise", only_own=False, tells=tells)


def said_by(sender: str, text: str, chat: str = "1") -> InboundMessage:
    """What somebody wrote in a chat."""
    made = message(text, chat=chat)
    return replace(made, origin=replace(made.origin, sender=sender))


async def write(
    store: Store, what: str | InboundMessage, rule: QueueRule = RULE, session_key: str = KEY, **fields: object
) -> Fresh:
    """Accept a message under a rule."""
    said = message(what) if isinstance(what, str) else what
    item = AcceptedMessage(message=said, session_key=session_key, queue=rule)
    (fresh,) = await store.inbox.accept([replace(item, **fields)])  # type: ignore[arg-type]
    assert isinstance(fresh, Fresh)
    return fresh


async def end(store: Store, turn: Turn) -> bool:
    """Answer; whether the turn has ended with it."""
    step = whole(turn.run, Text("answer"), step=turn.step + 1)
    kept, _ = await store.turns.step(turn.run, step, PlanIn(turn.conv_id), ())
    return kept.end is not None


async def turns(store: Store) -> list[list[str]]:
    """What each turn answers, until nothing is ready."""
    found = []
    while (turn := await store.turns.claim(KEY, "worker", answering)) is not None:
        found.append([one.text for one in turn.messages])
        await end(store, turn)
    return found


def told(fresh: Fresh) -> list[str]:
    return [one.body for one in fresh.said]


def under(mode: str, **fields: object) -> QueueRule:
    return replace(RULE, mode=mode, **fields)  # type: ignore[arg-type]


async def test_what_is_written_during_a_run_is_one_turn_of_each_place(store: Store) -> None:
    for text in ("before", "before too"):
        await write(store, text)
    turn = await claim(store)
    for sender, text, chat in (("1", "a", "1"), ("2", "b", "1"), ("1", "elsewhere", "2"), ("1", "c", "1")):
        await write(store, said_by(sender, text, chat))
    await end(store, turn)
    assert await turns(store) == [["before too"], ["a", "b", "c"], ["elsewhere"]]
    await write(store, "d")
    await write(store, "e")
    assert await turns(store) == [["d"], ["e"]], "nothing runs"


async def test_a_crash_does_not_change_what_is_collected(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await write(store, "one")
        await claim(store)
        await write(store, "two")
    async with opened(tmp_path) as store:
        for cut in await store.recovery.cut_turns("next"):
            await store.recovery.recover(cut.turn_id, "next", ())
        await write(store, "three")
        assert await turns(store) == [["one"], ["two", "three"]]


async def test_nothing_is_collected_across_a_command_that_is_open(store: Store) -> None:
    await write(store, "one")
    turn = await claim(store)
    await write(store, "two")
    await accept(store, "/new", InboundKind.COMMAND)
    await write(store, "three")
    await end(store, turn)
    assert await turns(store) == [["two"], ["three"]]


async def test_what_waits_by_itself_is_not_passed(store: Store) -> None:
    await write(store, "one")
    turn = await claim(store)
    for text, mode in (("two", "collect"), ("three", "followup"), ("four", "collect")):
        await write(store, text, under(mode))
    await end(store, turn)
    assert await turns(store) == [["two"], ["three"], ["four"]]


async def test_the_parts_of_a_message_stay_together_when_a_run_begins_between_them(tmp_path: Path) -> None:
    time = ManualTime(Watch())
    async with opened(tmp_path, Clock(now=time.now)) as store:
        await write(store, "first half", delay=500, gathers=True)
        await write(store, said_by("2", "other"))
        turn = await claim(store)
        assert turn.messages[0].text == "other"
        await write(store, said_by("2", "more of it"))
        await write(store, "second half", delay=500, gathers=True)
        await end(store, turn)
        time.advance(1)
        assert await turns(store) == [["first half", "more of it", "second half"]]


async def test_the_session_says_the_mode(store: Store) -> None:
    seq = await accept(store, "/queue followup", InboundKind.COMMAND)
    await store.settings.change(seq, KEY, ("queue", "followup"), ())
    await write(store, "one")
    turn = await claim(store)
    for text in ("two", "three"):
        await write(store, text)
    await end(store, turn)
    assert await turns(store) == [["two"], ["three"]]


async def test_what_steers_is_read_before_the_next_answer(tmp_path: Path, store: Store) -> None:
    await write(store, "one")
    turn = await claim(store)
    fresh = await write(store, "two", under("steer"), delay=1000, gathers=True)
    assert (fresh.state, fresh.ready_at) == ("steering", 0)
    assert not await end(store, turn), "it reads that first"
    assert await end(store, replace(turn, step=1))
    assert Stored(tmp_path).messages("state", "turn_id") == [("done", turn.turn_id)] * 2


async def test_what_steers_too_late_is_a_turn_of_its_own(store: Store) -> None:
    """Both orders of the two transactions, and a run that fails before it has read."""
    await write(store, "one")
    assert await end(store, await claim(store))
    assert (await write(store, "two", under("steer"))).state == "waiting"
    turn = await claim(store)
    assert (await write(store, "three", under("steer"))).state == "steering"
    await fail(store, turn)
    assert await turns(store) == [["three"]]


@pytest.mark.parametrize("what", ["elsewhere", "others", "command", "behind", "file", "beat", "summary"])
async def test_what_may_not_steer_waits(tmp_path: Path, what: str) -> None:
    rule, said = under("steer"), message("two")
    async with opened(tmp_path) as store:
        kind = InboundKind.WAKE if what == "beat" else InboundKind.MESSAGE
        await accept(store, "one", kind)
        turn = await store.turns.claim(KEY, "worker", answering, background=what == "beat")
        assert turn is not None
        if what == "elsewhere":
            said = message("two", chat="2")
        elif what == "others":
            rule, said = under("steer", only_own=True), said_by("2", "two")
        elif what == "command":
            await accept(store, "/new", InboundKind.COMMAND)
        elif what == "behind":
            await write(store, "earlier")
        elif what == "file":
            said = replace(said, attachments=(Attachment(kind="image", ref="r"),))
        elif what == "summary":
            await store.compactions.began(CompactionStart(run=turn.run, at=1, end=7, tokens=9))
        assert (await write(store, said, rule)).state == "waiting"
        if what == "summary":
            ended = CompactionEnd(run=turn.run, at=2, end=7, done=False)
            await store.compactions.ended(turn.transcript_id, None, 1, 0, ended)
            assert (await write(store, said_by("2", "three"), rule)).state == "steering"


async def test_calls_do_not_begin_when_somebody_steers(tmp_path: Path, store: Store) -> None:
    await write(store, "one")
    turn = await claim(store)
    asked = whole(turn.run, ToolCall("c1", "act", "{}"), ToolCall("c2", "act", "{}"))
    kept, _ = await store.turns.step(turn.run, asked, PlanIn(turn.conv_id), ())
    assert not kept.steered
    assert await store.turns.start_calls(turn.run, ["c1"], ())
    await write(store, "two", under("steer"))
    assert (await store.turns.results(turn.run, (), batch_done=False, events=())).steered
    assert not await store.turns.start_calls(turn.run, ["c2"], ())
    assert Stored(tmp_path).calls("state") == [("running",), ("asked",)]


async def test_the_newest_ends_the_run_and_is_answered_first(tmp_path: Path, store: Store) -> None:
    await write(store, "one")
    turn = await claim(store)
    await write(store, "two", under("followup"))
    fresh = await write(store, "four", under("interrupt"))
    assert (fresh.stopped, told(fresh)) == ((turn.turn_id,), [])
    newer = await write(store, "five", under("interrupt"))
    assert newer.stopped == (), "nothing runs any more"
    view = await store.reads.turn(turn.turn_id)
    assert view is not None
    assert view.state is TurnState.STOPPED
    assert Stored(tmp_path).messages("state", "reason", turn_id=turn.turn_id) == [("done", Cause.INTERRUPT)]
    assert await turns(store) == [["five"], ["two"], ["four"]]


async def test_what_steered_a_run_that_is_ended_waits(store: Store) -> None:
    await write(store, "one")
    await claim(store)
    assert (await write(store, "two", under("steer"))).state == "steering"
    await write(store, "three", under("interrupt"))
    assert await turns(store) == [["three"], ["two"]]


async def test_what_ends_a_run_waits_for_more_of_its_sender_before_all_others(tmp_path: Path) -> None:
    time = ManualTime(Watch())
    async with opened(tmp_path, Clock(now=time.now)) as store:
        await write(store, "one")
        await claim(store)
        await write(store, "two", under("followup"))
        for text in ("three", "four"):
            await write(store, text, under("interrupt"), delay=1000, gathers=True)
        assert await turns(store) == [], "the newest comes first"
        await accept(store, "a beat", InboundKind.WAKE)
        beat = await store.turns.claim(KEY, "worker", answering, background=True)
        assert beat is None, "a beat does not begin before what people wrote"
        time.advance(1)
        assert await turns(store) == [["three", "four"], ["two"]]


async def test_a_guest_ends_only_a_run_of_their_own(tmp_path: Path) -> None:
    guest = under("interrupt", only_own=True)
    async with opened(tmp_path) as store:
        await write(store, "one")
        turn = await claim(store)
        assert (await write(store, said_by("2", "two"), guest)).stopped == ()
        assert (await write(store, said_by("3", "three"), guest)).stopped == ()
        await end(store, turn)
        theirs = await claim(store)
        assert theirs.messages[0].text == "two"
        fresh = await write(store, said_by("2", "no, this"), guest)
        assert fresh.stopped == (theirs.turn_id,)
        assert await turns(store) == [["three"], ["no, this"]], "who has waited is not passed"


async def test_others_are_told_that_their_run_was_ended(store: Store) -> None:
    await write(store, said_by("2", "one", chat="7"))
    turn = await claim(store)
    fresh = await write(store, "two", under("interrupt"))
    assert (fresh.stopped, told(fresh)) == ((turn.turn_id,), ["interrupt 7"])


async def test_a_beat_is_not_ended(store: Store) -> None:
    await accept(store, "a beat", InboundKind.WAKE)
    assert await store.turns.claim(KEY, "worker", answering, background=True) is not None
    assert (await write(store, "two", under("interrupt"))).stopped == ()


async def pile_up(store: Store, drop: str, count: int) -> tuple[Turn, list[Fresh]]:
    """Write more messages during a run than may wait; returns its turn, and what became of each."""
    await write(store, "now")
    turn = await claim(store)
    rule = under("followup", drop=drop, cap=2)
    return turn, [await write(store, f"{n}", rule) for n in range(count)]


async def test_the_newest_is_dropped(tmp_path: Path, store: Store) -> None:
    turn, fresh = await pile_up(store, "new", 4)
    assert [one.state for one in fresh] == ["waiting", "waiting", "dropped", "dropped"]
    assert [told(one) for one in fresh] == [[], [], ["new 1"], []], "once in a burst"
    await end(store, turn)
    assert await turns(store) == [["0"], ["1"]]
    assert Stored(tmp_path).messages("reason", state="dropped") == [(Cause.CAP,)] * 2


async def test_the_oldest_is_dropped(tmp_path: Path, store: Store) -> None:
    turn, fresh = await pile_up(store, "old", 4)
    assert [told(one) for one in fresh] == [[], [], ["old 1"], []]
    await end(store, turn)
    assert await turns(store) == [["2"], ["3"]]
    assert Stored(tmp_path).messages("reason", state="dropped") == [(Cause.CAP,)] * 2


async def test_a_new_burst_is_told_anew(store: Store) -> None:
    turn, _ = await pile_up(store, "new", 3)
    await end(store, turn)
    turn = await claim(store)
    rule = under("followup", drop="new", cap=1)
    assert told(await write(store, "again", rule)) == ["new 1"]


async def test_who_wrote_elsewhere_is_told_there(store: Store) -> None:
    await write(store, "now")
    await claim(store)
    rule = under("followup", drop="old", cap=1)
    await write(store, said_by("2", "theirs", chat="7"), rule)
    assert told(await write(store, "mine", rule)) == ["old 7"]


async def test_who_interrupts_is_never_the_one_that_is_dropped(store: Store) -> None:
    await pile_up(store, "new", 2)
    fresh = await write(store, "this", under("interrupt", drop="new", cap=2))
    assert (fresh.state, told(fresh)) == ("waiting", ["old 1"])
    assert await turns(store) == [["this"], ["1"]]


async def test_who_has_ended_their_run_is_not_dropped_behind_others(tmp_path: Path) -> None:
    guest = under("interrupt", only_own=True, drop="new", cap=1)
    async with opened(tmp_path) as store:
        await write(store, said_by("2", "theirs"))
        turn = await claim(store)
        await write(store, "waits", under("followup"))
        fresh = await write(store, said_by("2", "no, this"), guest)
        assert (fresh.state, fresh.stopped, told(fresh)) == ("waiting", (turn.turn_id,), ["old 1"])


async def test_only_what_waits_counts(tmp_path: Path) -> None:
    rule = under("steer", cap=1)
    async with opened(tmp_path) as store:
        await write(store, "now")
        turn = await claim(store)
        await accept(store, "a program", InboundKind.API, turn_id="t9")
        for n in range(3):
            assert (await write(store, f"{n}", rule)).state == "steering"
        assert (await write(store, said_by("2", "beside", chat="7"), rule)).state == "waiting"
        assert Stored(tmp_path).messages(state="dropped") == []
        assert not await end(store, turn)


async def test_what_came_before_a_run_does_not_count(tmp_path: Path) -> None:
    rule = under("followup", cap=1)
    async with opened(tmp_path) as store:
        for n in range(3):
            await write(store, f"{n}", rule)
        turn = await claim(store)
        assert told(await write(store, "3", rule)) == []
        assert told(await write(store, "4", rule)) == ["summarise 1"]
        await end(store, turn)
        assert await turns(store) == [["1"], ["2"], ["4"]]


async def test_what_is_dropped_in_short_is_told_once_to_the_next_turn(tmp_path: Path, store: Store) -> None:
    turn, _ = await pile_up(store, "summarise", 5)
    assert Stored(tmp_path).messages("state", "reason", state="dropped") == [("dropped", Cause.TO_BE_NOTED)] * 3
    await end(store, turn)
    assert await turns(store) == [["3"], ["4"]]
    assert Stored(tmp_path).messages("reason", state="dropped") == [(Cause.NOTED,)] * 3


async def test_a_stop_drops_what_is_kept_in_short_too(tmp_path: Path, store: Store) -> None:
    await pile_up(store, "summarise", 3)
    seq = await accept(store, "/stop", InboundKind.COMMAND)
    await store.stops.stop(seq, KEY, lambda stopped: ())
    assert Stored(tmp_path).messages("reason", state="dropped") == [(Cause.STOP,)] * 3


async def test_an_edit_of_what_is_being_answered_follows_the_mode(store: Store) -> None:
    asked = message("one")
    await write(store, asked)
    turn = await claim(store)
    edited = replace(asked, kind=InboundKind.EDIT, event_key="e:1", text="one, I mean two")
    say = tells(sentence("edit"), asked.origin.place, "edited")
    assert told(await write(store, edited, under("steer"), say=say)) == [], "it is read in this very turn"
    assert not await end(store, turn)
