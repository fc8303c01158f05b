"""Commands: effect, reply and end at once, once."""

from collections.abc import Sequence

from agent.prompt.build import Prompt, Section
from bot.persistence.settings import SessionSettings
from bot.persistence.turns import Ending, Stopped
from channels.message import InboundKind
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.persistence.contract import Opens, accept, answer, claim
from tests.bot.store.opened import KEY

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


async def test_a_reset_begins_a_new_transcript(opens: Opens) -> None:
    async with opens() as store:
        await accept(store, "one")
        turn = await claim(store)
        await answer(store, turn)
        (seq,) = await accept(store, "/new", kind=InboundKind.COMMAND)
        await store.stops.stop(seq, KEY, lambda stopped: (), ending=Ending(renew="fresh"))
        await accept(store, "two")
        turn = await claim(store)
        assert (turn.transcript_id, turn.prompt) == ("fresh", None)
        assert [line.message.text for line in await store.reads.context("fresh")] == ["two"]
        await store.turns.set_prompt("fresh", PROMPT, "print")
        await store.turns.release(turn.run)
        turn = await claim(store)
        assert (turn.prompt, turn.fingerprint) == (PROMPT, "print")


async def test_a_setting_is_its_sessions_from_the_next_claim_on_and_set_once(opens: Opens) -> None:
    async with opens() as store:
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
