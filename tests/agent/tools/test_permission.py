"""Verdicts on commands: what runs, what is asked and how, what is refused; and for what a decision counts."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ToolError
from agent.shell import load_rule
from agent.tools.base import Ask, Decision, Refused
from agent.tools.exec import ExecParameters
from agent.tools.permission import Asking, Security
from agent.tools.process_tool import ProcessParameters
from tests.agent.tools.calls import Notes, outcome
from tests.agent.tools.commands import commands

HARMLESS, OTHER = "echo hello", "touch made"


async def verdict(root: Path, command: str, **settings: Any) -> str:
    """run, ask or refused; with ! what is asked also runs when nobody decides, with + it can be allowed for always."""
    try:
        ask = await asked(root, command, **settings)
    except Refused:
        return "refused"
    return "run" if ask is None else f"ask{'!' * ask.runs_unanswered}{'+' * bool(ask.grants)}"


async def asked(root: Path, command: str, session: str = "session", call: Any = None, **settings: Any) -> Ask | None:
    parameters = ExecParameters.model_validate({"command": command, **(call or {})})
    return await commands(root, **settings).exec.asks(parameters, Notes().context(session_key=session))


async def test_what_runs_what_is_asked_and_what_is_refused(tmp_path: Path) -> None:
    table = {  # security, ask, fallback: of a command that needs no rule, and of another
        ("allowlist", "on-miss", "deny"): ("run", "ask+"),
        ("allowlist", "on-miss", "allowlist"): ("run", "ask+"),
        ("allowlist", "on-miss", "full"): ("run", "ask!+"),
        ("allowlist", "off", "deny"): ("run", "refused"),
        ("allowlist", "off", "full"): ("run", "refused"),
        ("allowlist", "always", "deny"): ("ask", "ask"),
        ("allowlist", "always", "allowlist"): ("ask!", "ask"),
        ("allowlist", "always", "full"): ("ask!", "ask!"),
        ("full", "on-miss", "deny"): ("run", "run"),
        ("full", "off", "deny"): ("run", "run"),
        ("full", "always", "deny"): ("ask", "ask"),
        ("full", "always", "allowlist"): ("ask!", "ask"),
        ("full", "always", "full"): ("ask!", "ask!"),
    }
    for (security, ask, fallback), wanted in table.items():
        settings: Any = {"security": security, "ask": ask, "fallback": fallback}
        found = (await verdict(tmp_path, HARMLESS, **settings), await verdict(tmp_path, OTHER, **settings))
        assert found == wanted, settings


async def test_a_request_says_everything_that_will_happen(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    call = {"cwd": "sub", "env": {"MODE": "a\u202eb"}, "background": True}
    ask = await asked(tmp_path, OTHER, call=call, security="allowlist")
    assert ask is not None
    assert ask.subject == OTHER
    assert ask.is_code
    assert any("touch" in why for why in ask.why)
    assert 'It starts in "sub".' in ask.why
    assert 'Its environment has MODE="a\\u202eb".' in ask.why
    assert any("runs on in the background" in why for why in ask.why)
    assert ask.grants == (), "no rule covers a variable"
    assert "was not executed" in ask.otherwise


async def test_what_is_allowed_for_always_is_just_that(tmp_path: Path) -> None:
    ask = await asked(tmp_path, OTHER, security="allowlist")
    assert ask is not None
    (grant,) = ask.grants
    rule = load_rule(grant.removeprefix("exec:"))
    assert (rule.binary, rule.arguments, rule.folder) == (shutil.which("touch"), ("made",), str(tmp_path))
    assert "made" in ask.granted
    granted: Any = {"security": "allowlist", "grants": lambda: ("call:something", grant)}
    assert await verdict(tmp_path, OTHER, **granted) == "run"
    assert await verdict(tmp_path, "touch other", **granted) == "ask+"
    assert await verdict(tmp_path, f"{OTHER} && touch other", **granted) == "ask+"


async def test_the_allowlist_of_the_configuration_counts(tmp_path: Path) -> None:
    allowed: Any = {"security": "allowlist", "allowlist": ("touch made *",)}
    assert await verdict(tmp_path, "touch made more", **allowed) == "run"
    assert await verdict(tmp_path, OTHER, **allowed) == "ask+"


async def test_a_decision_counts_for_the_very_same_call_alone(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    calls: dict[str, dict[str, Any]] = {
        "the same": {},
        "another command": {"command": "touch made "},
        "another folder": {"call": {"cwd": "sub"}},
        "another variable": {"call": {"env": {"CI": "1"}}},
        "another time limit": {"call": {"timeout_seconds": 5}},
        "in the background": {"call": {"background": True}},
        "another session": {"session": "other"},
    }
    first = await asked(tmp_path, OTHER, security="allowlist")
    assert first is not None
    decision = Decision("once", first.digest, "")
    counts = []
    for what, more in calls.items():
        ask = await asked(tmp_path, **{"command": OTHER, "security": "allowlist"} | more)
        assert ask is not None, what
        counts += [what] * decision.allows(ask)
    assert counts == ["the same"]


async def test_what_can_never_run_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    refused = ("BASH_FUNC_ls%%", "a b", "a=b", "1", "")
    calls: list[dict[str, Any]] = [{"env": {name: "x"}} for name in refused]
    for call in [*calls, {"cwd": "missing"}, {"cwd": "link"}, {"cwd": ".."}]:
        for security in ("allowlist", "full"):
            with pytest.raises(ToolError) as error:
                await asked(tmp_path, OTHER, call=call, security=security)
            assert not isinstance(error.value, Refused)
            parameters = ExecParameters.model_validate({"command": OTHER, **call})
            assert (await outcome(commands(tmp_path).exec, parameters)).is_error
    assert not (tmp_path / "made").exists()


async def test_variables_reach_the_command(tmp_path: Path) -> None:
    output = await outcome(commands(tmp_path).exec, ExecParameters(command='echo "$MODE"', env={"MODE": "fast; ls"}))
    assert output.text == "[exit code 0]\nfast; ls\n"
    with pytest.raises(ValueError, match="NUL"):
        ExecParameters(command="true", env={"MODE": "a\x00"})


async def test_without_bash_nothing_is_understood(tmp_path: Path) -> None:
    """Another shell may read the same line in another way."""
    (tmp_path / "bin").mkdir()
    shell = shutil.which("sh")
    assert shell
    (tmp_path / "bin/sh").symlink_to(shell)
    alone: Any = {"security": "allowlist", "environ": {"PATH": str(tmp_path / "bin")}}
    ask = await asked(tmp_path, HARMLESS, **alone)
    assert ask is not None
    assert "There is no bash on this machine" in ask.why[-1]
    assert ask.grants == ()


async def test_what_is_written_to_a_command_is_asked_about_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter runs what it reads, and nobody knows which of them is one."""
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)
    context = Notes().context()
    table: list[tuple[Security, Asking, str]] = [
        ("allowlist", "on-miss", "ask"),
        ("full", "on-miss", "run"),
        ("full", "always", "ask"),
    ]
    for security, ask, wanted in table:
        made = commands(tmp_path, security=security, ask=ask)
        await made.exec.run(ExecParameters(command="cat", background=True), context)
        (one,) = made.background.of("session")
        digests = set()
        for text, eof in (("rm -rf .\n", False), ("rm -rf .\n", True), ("ls\n", False)):
            written = ProcessParameters(action="input", id=one.name, text=text, eof=eof)
            found = await made.process.asks(written, context)
            assert ("run" if found is None else "ask") == wanted, (security, ask)
            if found is not None:
                assert (found.subject, found.grants) == (text, ())
                assert one.name in found.why[0] or security == "full"
                digests.add(found.digest)
        assert len(digests) == (3 if wanted == "ask" else 0)
        assert await made.process.asks(ProcessParameters(action="input", id=one.name, eof=True), context) is None
        assert await made.process.asks(ProcessParameters(action="kill", id=one.name), context) is None
        await made.background.close(10)
    made = commands(tmp_path, security="allowlist", ask="off")
    await made.exec.run(ExecParameters(command="cat", background=True), context)
    (one,) = made.background.of("session")
    with pytest.raises(Refused, match="may do anything with it"):
        await made.process.asks(ProcessParameters(action="input", id=one.name, text="x"), context)
    await made.background.close(10)
