"""Commands of the model in a real service, with the defaults: what has a rule runs, the rest is asked about."""

from pathlib import Path
from typing import Any

from bot.persistence.approvals import Choice
from tests.bot.approvals.test_approvals import order
from tests.service import Hark, running
from tests.standins.script import Call


async def told(hark: Hark, command: str, **more: Any) -> str | None:
    """Let the model call exec; what it is told of that, None when a person must decide first."""
    before = len(hark.stored.approvals("approval_id"))
    hark.model.add(Call("exec", {"command": command, "needs": "host", **more}))
    hark.model.tolerate("unused")
    hark.model.add("done")
    events = len(hark.events)
    await hark.write("go")
    await hark.until(lambda: hark.ends("agent:main:telegram:direct:1", events), "an end of the run")
    if len(hark.stored.approvals("approval_id")) > before:
        return None
    return hark.model.requests[-1].messages[-1].tool_results[0].text


async def decide(hark: Hark, verdict: Any) -> str:
    """Of the open request; what the model is told then."""
    ((approval_id,),) = hark.stored.approvals("approval_id", state="open")
    events = len(hark.events)
    assert await hark.service.parts.requests.decide(approval_id, Choice(verdict=verdict), "telegram:1")
    await hark.until(lambda: hark.ends("agent:main:telegram:direct:1", events), "the end")
    return hark.model.requests[-1].messages[-1].tool_results[0].text


async def test_what_is_allowed_once_runs_once_and_what_is_allowed_for_always_does_without_asking(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as hark:
        workspace = hark.state.parent / "workspace"
        assert await told(hark, "echo the plan", needs="look") == "[exit code 0]\nthe plan\n"
        await hark.delivered()
        assert (await order(hark, "/why")).endswith("Made from: your own words alone")
        assert await told(hark, "echo x >> log.txt; touch made") is None
        assert not (workspace / "made").exists()
        assert await decide(hark, "once") == "[exit code 0]\n[no output]"
        assert (workspace / "made").exists()
        assert (workspace / "log.txt").read_text() == "x\n"
        assert await told(hark, "touch made") is None
        assert await decide(hark, "always") == "[exit code 0]\n[no output]"
        assert await told(hark, "touch made") == "[exit code 0]\n[no output]"
        assert await told(hark, "touch other") is None
        assert "A person denied this call" in await decide(hark, "denied")
        assert not (workspace / "other").exists()
    async with running(tmp_path) as hark:
        assert await told(hark, "touch made") == "[exit code 0]\n[no output]", "also behind a restart"
