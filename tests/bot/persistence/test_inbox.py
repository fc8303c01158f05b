"""What people wrote: once, in order, until it is answered."""

from collections.abc import Sequence
from dataclasses import replace

from agent.prompt.build import Prompt, Section
from bot.persistence.inbox import AcceptedMessage, Duplicate, Fresh
from bot.persistence.settings import SessionSettings
from bot.persistence.turns import Ending, Stopped
from bot.store.store import Store
from channels.base import Mark
from channels.message import InboundKind
from channels.outgoing import Planned, Sent
from channels.sources import sentence
from tests.bot.persistence.contract import Opens, Time, accept, answer, claim, settled
from tests.bot.store.opened import KEY, accept_and_claim, answering, fail, message


async def test_an_event_is_accepted_once_and_the_mark_with_it(opens: Opens) -> None:
    async with opens() as store:
        one, two = (AcceptedMessage(message=message(text), session_key=KEY) for text in ("one", "two"))
        first = await store.inbox.accept([one, two], Mark("telegram:bot", "7"))
        again = await store.inbox.accept([one, two], Mark("telegram:bot", "8"))
        assert all(isinstance(found, Fresh) for found in first)
        assert all(isinstance(found, Duplicate) for found in again)
        assert first[0].seq < first[1].seq
    async with opens() as store:
        assert await store.inbox.mark("telegram:bot") == "8"
        assert await store.inbox.mark("discord:bot") is None
        assert await store.inbox.count_waiting(KEY) == 2
        assert await store.inbox.waiting_sessions(9) == [(KEY, False, "telegram:1")]


async def test_what_is_dropped_waits_for_nobody(store: Store) -> None:
    refused = AcceptedMessage(message=message(), session_key=None, state="dropped", reason="access")
    await store.inbox.accept([refused])
    assert await store.inbox.waiting_sessions(9) == []


async def test_what_is_said_to_a_message_is_planned_with_it_once(opens: Opens) -> None:
    block = Planned(source=sentence("said"), body="too old", nonce=1)
    dropped = AcceptedMessage(message=message(), session_key=None, state="dropped", reason="age", say=(block,))
    async with opens() as store:
        (first,) = await store.inbox.accept([dropped])
        assert isinstance(first, Fresh)
        assert [(found.body, found.place.chat) for found in first.said] == [("too old", "1")]
        (again,) = await store.inbox.accept([dropped])
        assert isinstance(again, Duplicate)
    async with opens() as store:
        ((conv_id, _),) = await store.deliveries.open_conversations()
        assert await store.deliveries.next(conv_id) == first.said[0]


async def test_commands_are_found_until_they_are_carried_out(opens: Opens) -> None:
    async with opens() as store:
        (seq,) = await accept(store, "/help", kind=InboundKind.COMMAND)
    async with opens() as store:
        ((found, session_key, command),) = await store.inbox.open_commands()
        assert (found, session_key, command.text) == (seq, KEY, "/help")
        assert await store.turns.claim(KEY, "one", answering) is None, "a model never sees it"
        await store.commands.answer(seq, [Planned(source=sentence(f"cmd:{seq}"), body="help", nonce=1)])
        assert await store.inbox.open_commands() == []


async def test_a_delayed_message_is_ready_in_its_time(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        await accept(store, "later", delay=5_000)
        assert await store.turns.claim(KEY, "one", answering) is None
        assert list(await store.inbox.waiting_sessions(9)) == []
        time.at += 5_000
        assert list(await store.inbox.waiting_sessions(9)) == [(KEY, False, "telegram:1")]
        assert [found.text for found in (await claim(store)).messages] == ["later"]


async def test_a_message_steers_a_turn_that_has_not_ended(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    (seq,) = await accept(store, "two")
    assert await store.inbox.steer(turn.turn_id, seq)
    assert await answer(store, turn) is None, "it reads what steers it first"
    assert await store.inbox.steer(turn.turn_id, message("three", InboundKind.API))
    await fail(store, turn)
    assert not await store.inbox.steer(turn.turn_id, message("four", InboundKind.API))
    assert [found.text for found in (await claim(store)).messages] == ["three"]


async def test_what_gathers_is_taken_together_and_ready_at_a_start(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        await gather(store, "one")
        time.at += 600
        (second,) = await gather(store, "two")
        assert (second.wait, second.ready_at) == (1000, time.at + 1000)
        time.at += 500
        assert await store.turns.claim(KEY, "one", answering) is None
        await gather(store, "three", sender="2")
        time.at += 500
        turn = await claim(store)
        assert [found.text for found in turn.messages] == ["one", "two"]
        await answer(store, turn)
        await gather(store, "four")
        assert await store.turns.claim(KEY, "one", answering) is None
        await store.recovery.ready()
        assert [found.text for found in (await claim(store)).messages] == ["three"]


async def test_what_does_not_gather_ends_the_wait(opens: Opens) -> None:
    async with opens(Time().clock()) as store:
        await gather(store, "one")
        (ended,) = await store.inbox.accept([AcceptedMessage(message=message("two"), session_key=KEY)])
        assert isinstance(ended, Fresh)
        assert ended.wake == KEY
        assert [found.text for found in (await claim(store)).messages] == ["one", "two"]


async def gather(store: Store, text: str, sender: str = "1") -> list[Fresh]:
    """Let a message in that waits a second for more."""
    made = message(text)
    made = replace(made, origin=replace(made.origin, sender=sender))
    item = AcceptedMessage(message=made, session_key=KEY, delay=1000, gathers=True)
    return [found for found in await store.inbox.accept([item]) if isinstance(found, Fresh)]


async def test_edits_and_deletions_find_their_message(store: Store) -> None:
    """By its state: replaced or withdrawn, a message of its own, or mentioned with the next one."""
    one, two = message("one"), message("two")
    edit = replace(one, kind=InboundKind.EDIT, event_key="e:1", text="one!")
    gone = replace(two, kind=InboundKind.DELETE, event_key="d:2", text="")
    say = (Planned(source=sentence("edit:1"), body="Next.", nonce=1),)
    for made in (one, two, gone, edit):
        await store.inbox.accept([AcceptedMessage(message=made, session_key=KEY, say=say)])
    turn = await claim(store)
    assert [found.text for found in turn.messages] == ["one!"]
    late = replace(edit, event_key="e:2", text="one?")
    for made in (late, replace(late, event_key="e:3"), replace(late, event_key="e:4", text="one.")):
        await store.inbox.accept([AcceptedMessage(message=made, session_key=KEY, say=say)])
    await answer(store, turn)
    turn = await claim(store)
    assert [(found.text, found.kind) for found in turn.messages] == [("one.", InboundKind.EDIT)]
    await answer(store, turn)
    assert await store.turns.claim(KEY, "one", answering) is None
    ((conv_id, _),) = await store.deliveries.open_conversations()
    planned = await store.deliveries.next(conv_id)
    assert planned is not None
    assert planned.body == "Next."
    assert await settled(store, planned, Sent()) is None


# Commands: effect, reply and end at once, once.

PROMPT = Prompt((Section("identity", "You are."), Section("SOUL.md", "Kind.", is_file=True)))


async def test_a_stop_drops_what_was_before_it_and_nothing_else_and_once(opens: Opens) -> None:
    said: list[tuple[bool, int]] = []

    def reply(stopped: object) -> Sequence[Planned]:
        said.append((stopped.running, stopped.dropped))  # type: ignore[attr-defined]
        return [Planned(source=sentence("cmd"), body="stopped", nonce=1)]

    async with opens() as store:
        await accept(store, "one", "two")
        turn = await claim(store)
        (seq,) = await accept(store, "/stop", kind=InboundKind.COMMAND)
        await accept(store, "three")
        kept = await store.stops.stop(seq, KEY, reply)
        assert [found.body for found in kept.deliveries] == ["stopped"]
        assert kept.stopped.turns == (turn.turn_id,)
        again = await store.stops.stop(seq, KEY, reply)
        assert (again.deliveries, said) == ((), [(True, 1)])
        assert [found.text for found in (await claim(store)).messages] == ["three"]


async def test_a_stop_reaches_the_sessions_below_and_no_others(opens: Opens) -> None:
    below, beside = f"{KEY}:thread:1", f"{KEY}2:thread:1"
    async with opens() as store:
        for key in (below, beside):
            await accept(store, "one", "two", session_key=key)
        turns = {key: await claim(store, session_key=key) for key in (below, beside)}
        await accept(store, "waits", session_key=f"{KEY}:thread:2")
        (seq,) = await accept(store, "/stop", kind=InboundKind.COMMAND)
        await accept(store, "later", session_key=below)

        def reply(stopped: Stopped) -> Sequence[Planned]:
            return [
                Planned(source=sentence("cmd"), body=f"{stopped.running} {stopped.dropped}", nonce=1, respond="handle")
            ]

        kept = await store.stops.stop(seq, KEY, reply, ending=Ending(below=f"{KEY}:thread:"))
        assert [(one.body, one.respond) for one in kept.deliveries] == [
            ("True 2", "handle"),
            ("True 1", ""),
            ("False 1", ""),
        ]
        assert kept.stopped.turns == (turns[below].turn_id,)
        assert kept.stopped.sessions == (below,)
        assert (kept.stopped.running, kept.stopped.dropped) == (True, 2)
        assert [found.text for found in (await claim(store, session_key=below)).messages] == ["later"]
        assert await store.inbox.count_waiting(beside) == 1


async def test_a_reset_begins_a_new_transcript(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    await answer(store, turn)
    (seq,) = await accept(store, "/new", kind=InboundKind.COMMAND)
    await store.stops.stop(seq, KEY, lambda stopped: (), ending=Ending(renew="fresh"))
    turn = await accept_and_claim(store, "two")
    assert (turn.transcript_id, turn.prompt) == ("fresh", None)
    assert [line.message.text for line in await store.reads.context("fresh")] == ["two"]
    await store.turns.set_prompt("fresh", PROMPT, "print")
    await store.turns.release(turn.run)
    turn = await claim(store)
    assert (turn.prompt, turn.fingerprint) == (PROMPT, "print")


async def test_a_setting_is_its_sessions_from_the_next_claim_on_and_set_once(store: Store) -> None:
    assert await store.settings.of(KEY) == SessionSettings()
    (first,) = await accept(store, "/verbose on", kind=InboundKind.COMMAND)
    said = Planned(source=sentence(f"cmd:{first}"), body="on", nonce=1)
    assert [
        found.body for found in (await store.settings.change(first, KEY, ("verbose", "on"), [said])).deliveries
    ] == ["on"]
    (second,) = await accept(store, "/reasoning stream", kind=InboundKind.COMMAND)
    await store.settings.change(second, KEY, ("reasoning", "stream"), ())
    assert (await store.settings.change(first, KEY, ("verbose", "off"), [said])).deliveries == ()
    (reset,) = await accept(store, "/new", kind=InboundKind.COMMAND)
    await store.stops.stop(reset, KEY, lambda stopped: (), ending=Ending(renew="fresh"))
    await accept(store, "one")
    wanted = SessionSettings(verbose="on", reasoning="stream")
    assert (await claim(store)).settings == await store.settings.of(KEY) == wanted
