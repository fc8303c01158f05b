"""Streams of events: nothing missing, nothing twice, whenever a client comes and goes."""

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import ToolCall
from bot.bus import EventBus
from bot.gateway.event_routes import EventStream
from tests.bot.gateway.house import Call, House, Sent, house
from tests.watch import PATIENCE


def kinds(events: list[Sent]) -> list[str]:
    return [sent.event for sent in events]


def ids(events: list[Sent]) -> list[str]:
    """Ids of kept events; every one of them has one and its position, in their order, and no update has."""
    for sent in events:
        is_update = sent.event in ("message_update", "tool_execution_update")
        assert (sent.id is None) == is_update == ("id" not in sent.data), sent
        assert sent.event == sent.data["type"]
    assert positions(events) == sorted(set(positions(events)))
    return [sent.data["id"] for sent in events if sent.id is not None]


def positions(events: list[Sent]) -> list[int]:
    """Where the kept ones stand: what a client comes back with."""
    return [int(sent.id) for sent in events if sent.id is not None]


async def run_with_a_tool(at: House, message: str = "hello", session: str = "default") -> str:
    """A run of two steps that has ended."""
    run = await at.submit(message, session=session)
    call = await at.model.called()
    call.say("Let me look.")
    call.finish("Let me look.", ToolCall("c1", "read", '{"path": "AGENTS.md"}'))
    (await at.model.called()).answer("Found.")
    assert (await at.show(run, wait="20"))["status"] == "ok"
    return run


async def test_a_run_as_it_happens(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.events() as stream:
        run = await at.submit("hello")
        call = await at.model.called()
        call.think("Hm.")
        call.say("Hel")
        call.say("lo.")
        call.finish("Hello.")
        events = await stream.until("agent_end")
        assert kinds(events) == ["agent_start", "message_start", *["message_update"] * 3, "message_end", "agent_end"]
        assert ids(events) == [f"{run}/start", f"{run}/1/0", f"{run}/1/1", f"{run}/end"]
        assert [(sent.data["part"], sent.data["delta"]) for sent in events[2:5]] == [
            ("thinking", "Hm."),
            ("text", "Hel"),
            ("text", "lo."),
        ]
        assert [sent.data["offset"] for sent in events[2:5]] == [0, 0, 3]
        assert {sent.data["run"]["run_id"] for sent in events} == {run}
        assert events[-1].data["outcome"] == "completed"


async def test_the_stream_of_a_run_begins_with_it_and_ends_with_it(at: House) -> None:
    run = await at.submit("hello")
    call = await at.model.called()
    async with at.events(f"?run={run}") as stream:
        live = await stream.until("message_start")
        call.answer("Hello.")
        live += await stream.rest()
    await run_with_a_tool(at, session="other")
    async with at.events(f"?run={run}") as stream:
        later = await stream.rest()
    assert ids(live) == ids(later) == [f"{run}/start", f"{run}/1/0", f"{run}/1/1", f"{run}/end"]
    assert kinds(later) == ["agent_start", "message_start", "message_end", "agent_end"]
    over = await at.http.get(f"/v1/events?run={run}", headers={"last-event-id": later[-1].id or ""})
    assert over.status_code == 204


async def test_updates_are_not_replayed_and_nothing_else_is_missing(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.events() as stream:
        await run_with_a_tool(at)
        seen = await stream.until("agent_end")
        kept = ids(seen)
        assert len(kept) == len(set(kept)) == 8
        stored = [sent for sent in seen if sent.id]
        for n, last in enumerate(positions(seen)):
            for query, header in (("", str(last)), (f"?last_event_id={last}", None)):
                async with at.events(query, header) as again:
                    if n + 1 < len(kept):
                        replayed = await again.until("agent_end")
                        assert ids(replayed) == kept[n + 1 :]
                        assert replayed == stored[n + 1 :]


async def kept_so_far(at: House, run: str) -> list[Sent]:
    """The beginning of a run."""
    async with at.events(f"?run={run}") as stream:
        return await stream.until("message_start")


async def test_a_stream_begins_with_the_answers_that_are_being_written(at: House) -> None:
    await run_with_a_tool(at, session="done")
    run = await at.submit("hello")
    call = await at.model.called()
    other = await at.submit("hi", session="other")
    await at.model.called()
    async with at.events() as all_of_them, at.events("?session=default") as one:
        assert ids([await all_of_them.event(), await all_of_them.event()]) == [f"{run}/1/0", f"{other}/1/0"]
        assert ids([await one.event()]) == [f"{run}/1/0"]
        call.finish("", ToolCall("c1", "read", '{"path": "AGENTS.md"}'))
        for stream in (one, all_of_them):
            assert ids(await stream.until("tool_execution_start"))[0] == f"{run}/1/1"


@pytest.mark.parametrize("query", ["", "?session=default", "?run={run}"])
async def test_coming_back_in_the_middle_of_an_answer(query: str, at: House) -> None:
    run = await at.submit("hello")
    call = await at.model.called()
    query = query.format(run=run)
    (start,) = positions([(await kept_so_far(at, run))[0]])
    async with at.events(query, str(start)) as stream:
        before = await stream.until("message_start")
        call.say("One ")
        before += await stream.until("message_update")
    assert ids(before) == [f"{run}/1/0"]
    (begun,) = positions(before)
    async with at.events(query, str(begun)) as stream:
        call.say("two ")
        middle = await stream.until("message_update")
    assert ids(middle) == []
    assert middle[-1].data["offset"] == len("One ")
    async with at.events(query, str(begun)) as stream:
        call.finish("One two")
        after = await stream.until("agent_end")
    assert ids(after) == [f"{run}/1/1", f"{run}/end"]


async def test_coming_back_while_others_talk(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.events() as whole:
        async with at.events() as stream:
            slow = await at.submit("slow", session="slow")
            slow_call = await at.model.called()
            seen = await stream.until("message_start")
        quick = await at.submit("quick", session="quick")
        (await at.model.called()).answer("Quick.")
        await at.show(quick, wait="20")
        async with at.events("", seen[-1].id) as stream:
            seen += await stream.until("agent_end")
            slow_call.say("Slow.")
            seen += await stream.until("message_update")
        slow_call.finish("Slow.")
        await at.show(slow, wait="20")
        async with at.events("", str(positions(seen)[-1])) as stream:
            seen += await stream.until("agent_end")
        expected = await whole.until("agent_end") + await whole.until("agent_end")
        assert ids(seen) == ids(expected)
        assert len(set(ids(seen))) == 8


async def test_coming_back_after_a_restart_misses_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        run = await at.submit("hello")
        async with at.events(f"?run={run}") as stream:
            call = await at.model.called()
            seen = await stream.until("message_start")
            call.say("Half of")
            await stream.until("message_update")
    async with house(tmp_path) as at:
        async with at.events(f"?run={run}", str(positions(seen)[-1])) as stream:
            (await at.model.called()).answer("all of it")
            seen += await stream.rest()
        assert seen[-1].event == "agent_end"
        async with at.events(f"?run={run}") as stream:
            assert ids(seen) == ids(await stream.rest())


async def test_an_id_that_is_not_known_brings_all_that_is_kept(at: House) -> None:
    run = await run_with_a_tool(at)
    for unknown in (f"{run}/1/1", "long/gone", "-1", "1e3", "٣", "9" * 12, "9" * 30, "0"):
        async with at.events("", quote(unknown)) as stream:
            assert len(ids(await stream.until("agent_end"))) == 8
    async with at.events("?session=other", "3") as stream:
        other = await at.submit("hi", session="other")
        (await at.model.called()).answer("Hi.")
        assert ids(await stream.until("agent_end"))[0] == f"{other}/start"


async def test_a_session_by_name_or_key(at: House) -> None:
    async with at.events("?session=work") as named, at.events("?session=agent:main:http:direct:work") as keyed:
        await run_with_a_tool(at, session="play")
        run = await run_with_a_tool(at, session="work")
        for stream in (named, keyed):
            events = await stream.until("agent_end")
            assert {sent.data["run"]["run_id"] for sent in events} == {run}
    response = await at.http.get("/v1/events?session=agent:nobody")
    assert response.status_code == 422


async def test_a_queued_run_can_be_watched_and_dropped(at: House) -> None:
    await at.submit("first")
    await at.model.called()
    behind = await at.submit("second")
    async with at.events(f"?run={behind}") as stream:
        await at.http.delete(f"/v1/agent/{behind}")
        assert ids(await stream.rest()) == [f"{behind}/end"]
    async with at.events(f"?run={behind}") as stream:
        assert ids(await stream.rest()) == [f"{behind}/end"]


async def test_an_answer_that_begins_anew_is_told_again(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.events() as stream:
        run = await at.submit("hello")
        (await at.model.called()).fail(ModelError(ErrorKind.NETWORK, "connection reset"))
        (await at.model.called()).answer("Now.")
        events = await stream.until("agent_end")
        starts = [sent.data["id"] for sent in events if sent.event == "message_start"]
        assert starts == [f"{run}/1/0", f"{run}/1/0.1.2"]
        assert "notice" in kinds(events)
        assert len(ids(events)) == len(set(ids(events))) == 6


async def test_a_client_that_leaves_stops_nothing(at: House) -> None:
    run = await at.submit("hello")
    call = await at.model.called()
    async with at.events(f"?run={run}") as stream:
        await stream.until("message_start")
    call.answer("Finished.")
    assert (await at.show(run, wait="20"))["text"] == "Finished."


async def clogged(at: House, call: Call) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that does not read: its connection is full when this returns."""
    reader, writer = await asyncio.open_unix_connection(str(at.socket), limit=1024)
    writer.write(b"GET /v1/events HTTP/1.1\r\nHost: hark\r\n\r\n")
    await reader.readuntil(b": hark\n\n")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    async with at.events() as watch:
        for n in range(400):
            call.think(f"{n} " * 4000)
            await watch.until("message_update")
    return reader, writer


async def drained(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ends: int) -> bytes:
    """All that such a client gets once it reads, up to so many ends of runs."""
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    found = b""
    async with asyncio.timeout(PATIENCE):
        while found.count(b"\nevent: agent_end\n") < ends:
            chunk = await reader.read(1 << 20)
            assert chunk
            found += chunk
        while not found.endswith(b"\n\n\r\n"):
            found += await reader.read(1 << 20)
    writer.close()
    return found


def kept_in(raw: bytes) -> list[int]:
    """Positions in a raw answer, whose chunks may begin and end anywhere."""
    return [int(line.removeprefix(b"id: ")) for line in raw.split(b"\n") if line.startswith(b"id: ")]


async def stored(at: House, after: int = 0) -> dict[str, int]:
    """Positions of the events that are kept, by their ids."""
    reads = at.service.parts.store.reads
    found = await reads.events_after(after, await reads.last_event(), None, None, 1000)
    return {json.loads(event.body)["id"]: event.seq for event in found}


async def test_a_slow_reader_loses_updates_only(at: House) -> None:
    run = await at.submit("hello")
    call = await at.model.called()
    reader, writer = await clogged(at, call)
    call.answer("Done.")
    await at.show(run, wait="20")
    raw = await drained(reader, writer, 1)
    kept = await stored(at)
    assert kept_in(raw) == [kept[f"{run}/{part}"] for part in ("1/0", "1/1", "end")]
    updates = raw.count(b"event: message_update\n")
    assert 0 < updates < 400


async def test_a_reader_that_is_far_too_slow_misses_nothing_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.gateway.event_routes._PAGE", 7)
    async with house(tmp_path) as at:
        run = await at.submit("hello")
        call = await at.model.called()
        reader, writer = await clogged(at, call)
        at.model.reply = "Quick."
        runs = [await at.submit(f"quick {n}", session=f"s{n % 3}") for n in range(12)]
        for quick in runs:
            await at.show(quick, wait="20")
        call.answer("Done.")
        await at.show(run, wait="20")
        raw = await drained(reader, writer, 13)
        assert kept_in(raw) == [seq for event_id, seq in (await stored(at)).items() if event_id != f"{run}/start"]


async def test_quiet_streams_are_pinged(at: House) -> None:
    bus = EventBus()
    chunks = EventStream(at.service.parts.store.reads, bus, ping_seconds=0.001).chunks(None)
    found = [await anext(chunks) for _ in range(4)]
    assert found[0] == b": hark\n\n"
    assert b": ping\n\n" in found
    bus.close()
    assert [chunk async for chunk in chunks if chunk != b": ping\n\n"] == []


# Joining a stream in the middle of an answer, and coming back behind the beginning of one.

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
