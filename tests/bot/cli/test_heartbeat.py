"""`hark heartbeat`, with a service that runs and without one."""

from pathlib import Path

from tests.bot.cli.test_commands import Done, alone, hark
from tests.bot.gateway.house import House
from tests.bot.gateway.test_heartbeat import checklist, owner_writes
from tests.stored import Stored

__all__ = ["alone"]  # a fixture
LOCAL = "agent:main:console:direct:local"


async def test_the_service_that_runs_is_asked(tmp_path: Path, at: House) -> None:
    await owner_writes(at)
    checklist(at)
    dry = await hark(tmp_path, "heartbeat", "run", "--dry")
    assert (dry.code, dry.error) == (0, "")
    assert "- look whether the tomatoes are dry\n" in dry.out
    assert dry.out.endswith(f"\n\nA beat that is due now would ask the model, in {LOCAL}:heartbeat.\n")
    assert at.stored.firings() == []
    assert await hark(tmp_path, "heartbeat", "run") == Done(0, f"A beat runs in {LOCAL}:heartbeat.\n", "")
    call = await at.model.called()
    again = await hark(tmp_path, "heartbeat", "run")
    assert again == Done(1, "No beat (busy): The conversation is at work.\n", "")
    call.answer("The tomatoes are dry.")
    told = await hark(tmp_path, "heartbeat", "wake", "--text", "it rains", "--session", "garden")
    assert told == Done(0, "The next turn of agent:main:http:direct:garden is told of it.\n", "")
    shown = await hark(tmp_path, "heartbeat", "status")
    assert shown.out.startswith(f"heartbeat   on, every 30 minutes\nsession     {LOCAL}\nnext        ")
    assert "by hand, 5 tokens" in shown.out


async def test_without_a_service_the_store_is_asked(alone: Path) -> None:
    async def asked(*arguments: str) -> Done:
        return await hark(alone, "heartbeat", *arguments)

    shown, dry = await asked("status"), await asked("run", "--dry")
    assert (shown.code, shown.error, dry.code, dry.error) == (0, "", 0, "")
    assert "none yet: no owner has written directly" in shown.out
    assert "A beat that is due now would not ask the model (no-session): No owner has written" in dry.out
    for arguments, words, code in (
        (("run",), f"No service is running in {alone / 'state'}. `hark run` starts one;", 1),
        (("wake", "--text", "x", "--now"), "Without --now the event is kept", 1),
        (("wake", "--text", "x"), "Name one.", 1),
        (("wake", "--text", "x", "--session", "agent:x"), "is not a session key", 2),
        (("wake",), "--text", 2),
    ):
        done = await asked(*arguments)
        assert (done.code, done.out, words in done.error) == (code, "", True), done
    stored = Stored(alone / "state")
    assert stored.messages() == []
    told = await asked("wake", "--text", "it rains", "--session", LOCAL)
    assert told == Done(0, f"The next turn of {LOCAL} is told of it.\n", "")
    assert stored.texts(session_key=LOCAL) == ["it rains"]
