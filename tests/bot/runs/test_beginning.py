"""The beginning of a run is told once, also when the store cannot write before the run can be prepared."""

from pathlib import Path

from agent.events import Outcome
from tests.service import running, session_of, starts
from tests.stored import disk_full


async def test_a_run_that_cannot_be_prepared_at_once_begins_once(tmp_path: Path) -> None:
    left: list[int] = []

    def probe(at: str) -> None:
        if at == "before" and left:
            left[0] -= 1
            if left[0] == 0:
                raise disk_full()

    async with running(tmp_path, probe=probe) as hark:
        await hark.rested()
        left.append(3)  # accepted, claimed, and then the system prompt
        await hark.write("hello")
        await hark.until(lambda: left == [0] and hark.time.pauses(1) == 2, "the pauses of the lane and of the probe")
        hark.time.advance(1)
        await hark.until(lambda: hark.ends(session_of("1")), "the end")
        assert hark.ends(session_of("1"))[0].outcome is Outcome.COMPLETED
        assert len(starts(hark.events)) == 1
        await hark.delivered()
