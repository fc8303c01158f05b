"""Joining a stream in the middle of an answer, and coming back behind the beginning of one."""

from pathlib import Path

import pytest

from tests.bot.gateway.house import house
from tests.bot.gateway.test_events import ids, kinds, positions, run_with_a_tool

ANSWER = ["message_start", "message_update", "message_end", "agent_end"]
QUERIES = pytest.mark.parametrize("query", ["", "?session=default", "?run={run}"])


@QUERIES
@pytest.mark.parametrize("last", [None, "long/gone", "{run}/1/0", "0", "9999", "9" * 20])
async def test_the_start_of_an_answer_comes_before_its_updates(tmp_path: Path, query: str, last: str | None) -> None:
    async with house(tmp_path) as at, at.events() as watch:
        run = await at.submit("hello")
        call = await at.model.called()
        call.say("One ")
        await watch.until("message_update")
        async with at.events(query.format(run=run), last and last.format(run=run)) as stream:
            await stream.next()
            call.say("two ")
            call.finish("One two")
            events = await stream.until("agent_end")
        assert kinds(events)[-4:] == ANSWER
        assert kinds(events)[:-4] in ([], ["agent_start"])


@QUERIES
async def test_nothing_twice_behind_the_start_of_an_answer(tmp_path: Path, query: str) -> None:
    """Whatever the client looked at before, in the same life of the service or a later one."""
    async with house(tmp_path) as at:
        async with at.events() as stream:
            run = await run_with_a_tool(at)
            kept = await stream.until("agent_end")
        for last in positions(kept)[:-1]:
            async with at.events(query.format(run=run), str(last)) as stream:
                assert positions(await stream.until("agent_end")) == [n for n in positions(kept) if n > last]
    async with house(tmp_path) as at:
        for last in positions(kept)[:-1]:
            async with at.events(query.format(run=run), str(last)) as stream:
                assert positions(await stream.until("agent_end")) == [n for n in positions(kept) if n > last]


@QUERIES
async def test_an_answer_that_begins_anew_after_a_restart(tmp_path: Path, query: str) -> None:
    async with house(tmp_path) as at:
        run = await at.submit("hello")
        call = await at.model.called()
        async with at.events() as stream:
            call.say("Lost")
            seen = await stream.until("message_update")
        assert ids(seen) == [f"{run}/1/0"]
    async with house(tmp_path) as at, at.events() as watch:
        call = await at.model.called()
        call.say("All ")
        await watch.until("message_update")
        async with at.events(query.format(run=run), seen[0].id) as stream:
            await stream.next()
            call.answer("of it")
            events = await stream.until("agent_end")
        assert kinds(events) == ANSWER
        assert ids(events) == [f"{run}/1/0.2.1", f"{run}/1/1", f"{run}/end"]
