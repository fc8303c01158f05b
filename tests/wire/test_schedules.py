"""Jobs, reminders and events: ordered in a chat, by the model, over HTTP; done in time, late, failing, deleted."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.standins.script import Call, Fail, Hang
from tests.wire.answers import PLATFORMS
from tests.wire.heartbeats import DAY, HOUR, Days, days

pytestmark = pytest.mark.xdist_group("wire-heartbeat")
NEW_SHIP = "A ship has come in."


class Jobs(Days):
    """A service without a heartbeat, and its jobs."""

    words = "scheduled"

    async def asks(self, **arguments: Any) -> str:
        """Let the model schedule something for Alice; returns what the tool told it."""
        self.stage.model.on("please", Call("schedule", arguments))
        self.stage.model.add(f"Done, {len(self.stage.model.requests)}.")
        await self.says("please")
        return str(list(self.stage.stored.results().values())[-1][-1])

    def ids(self) -> list[str]:
        """Return the jobs that exist."""
        return [found for (found,) in self.stage.stored.jobs("job_id") if found != "heartbeat"]


@pytest.mark.parametrize("name", PLATFORMS)
async def test_a_job_from_its_order_in_a_thread_to_its_end(name: str, tmp_path: Path) -> None:
    typed = "/schedule" if name == "telegram" else "!schedule"
    async with days(tmp_path, every=0, name=name, made=Jobs) as play:
        stage, side = play.stage, play.stage.side
        side.may_double(NEW_SHIP, "Nothing is scheduled.")
        async with stage.serving():
            assert await play.says(f"{typed} every 1h Look.", "bob") == f"re: {typed} every 1h Look.", "no such command"
            stage.model.on("please", Call("schedule", {"every": "1h", "prompt": "Look."}))
            stage.model.add("I cannot.")
            await play.says("please", "bob")
            await play.says("hello")
            offered = ["schedule" in [tool.name for tool in request.tools] for request in stage.model.requests]
            assert (offered, play.ids()) == ([False, False, False, True], []), "for the owner alone"
            await play.says("in a group", room=side.room, mention=True) if name != "slack" else None
            assert play.ids() == []

            thread = side.thread(side.say("start", room=side.room))
            await play.says("in here", room=side.room, mention=True, thread=thread)
            assert "schedule" not in [tool.name for tool in stage.model.requests[-1].tools], "where others read along"
            told = await play.says(
                f"{typed} every 2h Count the ships.", room=side.room, thread=thread, mention=name != "telegram"
            )
            assert all(time in told for time in ("12:00", "14:00", "16:00")), told
            (job,) = play.ids()
            assert job in await play.says(typed)
            play.answer = NEW_SHIP
            await play.next(job)
            assert side.posts(side.room, thread)[-1] == NEW_SHIP
            assert (NEW_SHIP in side.posts(side.room), NEW_SHIP in play.told) == (False, False)
            await play.says(f"{typed} pause {job}")
            await play.after(4 * HOUR)
            assert len(play.asked) == 1
            await play.says(f"{typed} resume {job}")
            await play.next(job)
            assert len(play.asked) == 2
        stage.time.advance(6 * HOUR + 600)
        async with stage.serving():
            await play.due()
            assert (len(play.asked), "was due" in play.asked[-1][1]) == (3, True), "what was missed comes once"
            await play.next(job)
            assert (len(play.asked), "was due" in play.asked[-1][1]) == (4, False)
            stage.time.advance(1)
            await play.says(f"{typed} run {job}")
            await stage.until(lambda: len(play.asked) == 5 and play.over(), "the run by hand")
            history = await play.says(f"{typed} history {job}")
            assert history.count("said") >= 5, history
            await play.says(f"{typed} delete {job}")
            assert play.ids() == []
            await play.after(DAY)
            assert (len(play.asked), await play.says(typed)) == (5, "Nothing is scheduled.")


@contextlib.asynccontextmanager
async def socket(home: Path) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.AsyncHTTPTransport(uds=str(home / "state" / "hark.sock"))
    async with httpx2.AsyncClient(base_url="http://hark", transport=transport) as http:
        yield http


async def hark(home: Path, *words: str) -> tuple[int, str]:
    """Run the command line beside the service."""
    file = home / "config.yaml"
    file.write_text("state: ./state\nworkspace: ./workspace\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", *words, "--config", str(file), stdout=asyncio.subprocess.PIPE, stderr=-2
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_events_of_programs_are_told_at_once_or_with_the_next_turn_whatever_dies(tmp_path: Path) -> None:
    async with days(tmp_path) as play:
        play.note("# Nothing")
        play.stage.given["gateway"] = True
        play.stage.changes["gateway"] = {"port": 0}
        async with play.stage.serving(), socket(tmp_path) as http:
            assert (await http.post("/v1/heartbeat/wake", json={"text": "Too early."})).status_code == 409
            await play.hello()
            for body in ({}, {"text": ""}, {"text": 1}, {"text": "x", "now": "perhaps"}):
                assert (await http.post("/v1/heartbeat/wake", json=body)).status_code == 422, body
            told = await http.post("/v1/heartbeat/wake", json={"text": "The backup has failed."})
            assert (told.status_code, play.asked) == (202, [])
            play.answer = "The backup has failed, look at the disk."
            await play.turn()
            assert "The backup has failed." in play.asked[0][1]
            assert play.told == [play.answer]
            play.answer = "HEARTBEAT_OK"
            await play.turn()
            assert len(play.asked) == 1, "an event is told once"
            play.stage.time.advance(1)  # each receipt has a moment of its own
            await asyncio.gather(
                *(http.post("/v1/heartbeat/wake", json={"text": f"Build {n}.", "now": True}) for n in range(3))
            )
            await play.stage.until(lambda: len(play.asked) >= 2 and play.over(), "a heartbeat turn at once")
            await play.after(15)
            seen = "".join(text for _, text in play.asked[1:])
            assert ([seen.count(f"Build {n}.") for n in range(3)], len(play.asked) <= 4) == ([1, 1, 1], True)
            found = (await http.get("/v1/heartbeat")).json()
            assert (found["on"], len(found["beats"]) >= 3, found["next_at"] > play.stage.time.now()) == (True,) * 3
            dry = (await http.post("/v1/heartbeat/run", json={"dry": True})).json()
            assert (dry["begun"], dry["reason"]) == (False, "empty")
            play.note("- look at the cat\n")
            dry = (await http.post("/v1/heartbeat/run", json={"dry": True})).json()
            assert (dry["begun"], dry["reason"]) == (False, "")
            await play.turn()
            assert play.asked[-1][1].partition("\n")[2] == dry["prompt"].partition("\n")[2]
            code, said = await hark(tmp_path, "heartbeat", "wake", "--text", "By hand.", "--now")
            assert code == 0, said
            await play.stage.until(lambda: "By hand." in play.asked[-1][1] and play.over(), "a turn at once")
            play.note("# Nothing")
            play.answer = [Fail(400, message="no such thing")]
            before = len(play.asked)
            play.stage.time.advance(1)
            await http.post("/v1/heartbeat/wake", json={"text": "The roof leaks.", "now": True})
            await play.stage.until(lambda: len(play.asked) > before and play.over(), "a turn that fails")
        del play.stage.given["gateway"]
        play.answer = [Hang()]
        async with play.stage.serving() as service:
            await service.parts.dispatcher.beats.wake("The house burns.", now=True)
            await play.stage.until(lambda: "The house burns." in play.asked[-1][1], "a turn that never ends")
            play.stage.dead = True
        play.answer = "HEARTBEAT_OK"
        async with play.stage.serving():
            await play.hello("and now?")
        last = str(play.stage.model.requests[-1].messages)
        assert ("The roof leaks." in last, "The house burns." in last) == (True, True)
