"""Verdicts on commands: what runs, what is asked and how, what is refused; and for what a decision counts."""

import itertools
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent.errors import ToolError
from agent.shell import LEVELS, Judge, Level, Rule, load_rule, rule_json
from agent.tools.base import Ask, Decision, Refused
from agent.tools.exec import ExecParameters
from agent.tools.permission import HARMLESS, Asking, Permission, Security, Verdict
from agent.tools.process_tool import ProcessParameters
from tests.agent.tools.calls import Notes, outcome, run_allowed
from tests.agent.tools.commands import commands

PROGRAM, OTHER = "git --version", "touch made"
HELD: tuple[Level, ...] = ("look", "work", "network")
Outcome = str
"""`look`, `work`, `network` or `host`: it runs there at once; `ask <level>`; `refused`. `!`: also runs when nobody
decides; `+`: it can be allowed for always."""


def decided(root: Path, needs: Level | None = None, command: str = PROGRAM, **more: Any) -> Outcome:
    """What becomes of a command. more: settings, and rule: the level of a rule for `PROGRAM`; guest; held."""
    rule: Level | None = more.pop("rule", None)
    guest, held = more.pop("guest", False), more.pop("held", HELD)
    program = shutil.which("git") or ""
    grants = () if rule is None else (f"exec:{rule_json(Rule(program, ('--version',), level=rule))}",)
    settings: Any = {"security": "allowlist", "asking": "on-miss", "fallback": "deny"}
    settings |= {"in_sandbox": "ask", "network": "ask"} | more
    judge = Judge(workspace=root, path=os.environ["PATH"], allowlist=())
    permission = Permission(held=held, judge=judge, grants=lambda session: grants, **settings)
    try:
        verdict = permission.of(command, root, {}, needs, only_look=guest)
        ask = permission.ask(bound=(), subject=command, missed=verdict.missed, rules=verdict.rules)
    except Refused:
        return "refused"
    if ask is None:
        return verdict.level
    if verdict.missed:
        assert permission.shown(verdict.level) in ask.why
    return f"ask {verdict.level}{'!' * ask.runs_unanswered}{'+' * bool(ask.grants)}"


BARE: dict[str, Any] = {"held": ()}
LOOKS: dict[str, Any] = {"held": ("look",)}
GUEST: dict[str, Any] = {"guest": True}
FREE: dict[str, Any] = {"in_sandbox": "allow"}
FULL: dict[str, Any] = {"security": "full"}
OFF: dict[str, Any] = {"asking": "off"}
ALWAYS: dict[str, Any] = {"asking": "always"}
TABLE: list[tuple[dict[str, Any], tuple[Outcome, Outcome, Outcome, Outcome, Outcome]]] = [
    # settings: what becomes of it when nothing is said, and with needs: look, work, network, host
    ({}, ("look", "look", "ask work+", "ask network+", "ask host+")),
    (FREE, ("work", "look", "work", "ask network+", "ask host+")),
    ({"network": "allow"}, ("look", "look", "ask work+", "network", "ask host+")),
    ({"network": "deny"}, ("look", "look", "ask work+", "refused", "ask host+")),
    (FULL, ("work", "look", "work", "network", "ask host+")),
    (FULL | {"network": "deny"}, ("work", "look", "work", "refused", "ask host+")),
    (OFF, ("look", "look", "refused", "refused", "refused")),
    (OFF | FREE, ("work", "look", "work", "refused", "refused")),
    (OFF | FULL, ("work", "look", "work", "network", "refused")),
    (ALWAYS, ("ask look", "ask look", "ask work", "ask network", "ask host")),
    (ALWAYS | FULL, ("ask work", "ask look", "ask work", "ask network", "ask host")),
    ({"rule": "look"}, ("look", "look", "ask work+", "ask network+", "ask host+")),
    ({"rule": "work"}, ("work", "look", "work", "ask network+", "ask host+")),
    ({"rule": "network"}, ("network", "look", "work", "network", "ask host+")),
    ({"rule": "network", "network": "deny"}, ("work", "look", "work", "refused", "ask host+")),
    ({"rule": "host"}, ("host", "look", "work", "network", "host")),
    ({"rule": "host"} | OFF, ("host", "look", "work", "network", "host")),
    ({"rule": "host"} | ALWAYS, ("ask look", "ask look", "ask work", "ask network", "ask host")),
    ({"rule": "work"} | OFF, ("work", "look", "work", "refused", "refused")),
    (GUEST, ("look", "look", "refused", "refused", "refused")),
    (GUEST | FULL, ("look", "look", "refused", "refused", "refused")),
    (GUEST | FREE | {"rule": "host"}, ("look", "look", "refused", "refused", "refused")),
    (GUEST | ALWAYS, ("ask look", "ask look", "refused", "refused", "refused")),
    (GUEST | BARE | FULL | {"rule": "host"}, ("refused",) * 5),
    (BARE, ("ask host+",) * 5),
    (BARE | FULL | FREE, ("ask host+",) * 5),
    (BARE | OFF, ("refused",) * 5),
    (BARE | {"rule": "work"}, ("ask host+",) * 5),
    (BARE | {"rule": "host"}, ("host",) * 5),
    (BARE | {"rule": "host"} | ALWAYS, ("ask host",) * 5),
    (BARE | {"network": "deny"}, ("ask host+", "ask host+", "ask host+", "refused", "ask host+")),
    (LOOKS, ("look", "look", "ask host+", "ask host+", "ask host+")),
    (LOOKS | FREE | {"network": "allow"}, ("look", "look", "ask host+", "ask host+", "ask host+")),
    (LOOKS | FULL, ("look", "look", "ask host+", "ask host+", "ask host+")),
    (LOOKS | FULL | {"network": "deny"}, ("look", "look", "ask host+", "refused", "ask host+")),
    (LOOKS | OFF | FULL, ("look", "look", "refused", "refused", "refused")),
    (LOOKS | {"fallback": "full"}, ("look", "look", "ask host!+", "ask host!+", "ask host!+")),
    (LOOKS | {"rule": "look"}, ("look", "look", "ask host+", "ask host+", "ask host+")),
    (LOOKS | {"rule": "network"}, ("ask host+", "look", "ask host+", "ask host+", "ask host+")),
    (LOOKS | {"rule": "host"}, ("host", "look", "host", "host", "host")),
    (LOOKS | GUEST | FULL, ("look", "look", "refused", "refused", "refused")),
    ({"fallback": "full"}, ("look", "look", "ask work!+", "ask network!+", "ask host!+")),
    ({"fallback": "allowlist"}, ("look", "look", "ask work+", "ask network+", "ask host+")),
    (ALWAYS | {"fallback": "allowlist"}, ("ask look!", "ask look!", "ask work", "ask network", "ask host")),
    (ALWAYS | {"fallback": "full"}, ("ask look!", "ask look!", "ask work!", "ask network!", "ask host!")),
]
NEEDS: tuple[Level | None, ...] = (None, *LEVELS)


@pytest.mark.parametrize(("settings", "wanted"), TABLE, ids=str)
def test_what_runs_where_what_is_asked_and_what_is_refused(
    tmp_path: Path, settings: dict[str, Any], wanted: tuple[Outcome, ...]
) -> None:
    assert tuple(decided(tmp_path, needs, **settings) for needs in NEEDS) == wanted


def test_whatever_the_settings_are_what_is_promised_holds(tmp_path: Path) -> None:
    count = 0
    for security, asking, in_sandbox, network, rule, guest, held, needs in itertools.product(
        ("allowlist", "full"), ("off", "on-miss", "always"), ("ask", "allow"), ("ask", "allow", "deny"),
        (None, *LEVELS), (False, True), (HELD, ("look",), ()), NEEDS,
    ):  # fmt: skip
        found = decided(
            tmp_path, needs, security=security, asking=asking, in_sandbox=in_sandbox, network=network, rule=rule,
            guest=guest, held=held,
        )  # fmt: skip
        case = f"{security} {asking} {in_sandbox} {network} {rule=} {guest=} {held=} {needs=}: {found}"
        count += 1
        level = found.removeprefix("ask ").rstrip("!+")
        allowed = LEVELS.index(rule) if rule else -1
        assert level in (*LEVELS, "refused"), case
        assert not (asking == "off" and found.startswith("ask")), case
        assert not (asking == "always" and found in LEVELS), case
        assert not (network == "deny" and level == "network"), case
        assert not guest or level == "refused" or (held and level == "look"), case
        assert level in (*held, "host", "refused"), case
        assert needs is None or level in (needs if needs in held else "host", "refused"), case
        if found in LEVELS:
            free = found == "look" or security == "full" or (in_sandbox if found == "work" else network) == "allow"
            assert LEVELS.index(level) <= allowed or (found in held and free), case
    assert count == 2 * 3 * 2 * 3 * 5 * 2 * 3 * 5


@pytest.mark.parametrize("line", HARMLESS)
def test_without_a_sandbox_a_few_lines_run_to_the_letter(tmp_path: Path, line: str) -> None:
    assert decided(tmp_path, command=line, **BARE) == "host"
    assert decided(tmp_path, command=line, **BARE, **ALWAYS) == "ask host"
    assert decided(tmp_path, command=line, **BARE, **GUEST) == "refused"
    for other in (f"{line} ", f" {line}", f"{line}\n", f"{line} x", f"{line};{line}", f"{line} > x", f"./{line}"):
        if "pwd" not in other:  # the shell itself says it
            assert decided(tmp_path, command=other, **BARE).startswith("ask host"), other


@pytest.mark.parametrize(
    ("command", "said", "allowed"),
    [
        ("git --version > made", "ask work", "work"),
        ("git --version > /dev/null", "look", "work"),
        ("git --version 2>&1 | cat", "look", "work"),
        ("sort < made", "look", "work"),
        ("true", "look", "work"),
        ("if", "look", "work"),
        ("echo x > made", "ask work", "work"),
        ("true; { : ; } >> made", "ask work", "work"),
        ("git --version; echo x > made", "ask work", "work"),
    ],
)
def test_what_the_line_says_decides_where_nothing_else_is_said(
    tmp_path: Path, command: str, said: Outcome, allowed: Outcome
) -> None:
    assert decided(tmp_path, command=command) == said
    assert decided(tmp_path, command=command, **FREE) == allowed


def test_a_rule_gives_no_more_than_what_the_line_does_besides_can_have(tmp_path: Path) -> None:
    """A rule for the host, and a line that writes a file, sets a variable, or is not known before it runs."""
    for command, most in (
        ("git --version", "host"),
        ("git --version; git --version", "host"),
        ("git --version > made", "ask work"),
        ("GIT_DIR=x git --version", "work"),
        ("LC_ALL=C git --version", "host"),
    ):
        assert decided(tmp_path, command=command, rule="host") == most, command
        assert decided(tmp_path, "host", command=command, rule="host") == ("host" if most == "host" else "ask host")
    assert decided(tmp_path, command="git --version; touch made", rule="host") == "look"
    assert decided(tmp_path, "work", command="git --version; touch made", rule="host") == "ask work+"


def test_what_no_rule_speaks_of_is_asked_about_beyond_the_room(tmp_path: Path) -> None:
    """A variable that is given to it could lead a command that a rule is about to another one."""
    judge = Judge(workspace=tmp_path, path=os.environ["PATH"], allowlist=(Rule("git"),))
    permission = Permission(
        security="allowlist", asking="on-miss", fallback="deny", in_sandbox="ask", network="ask", held=HELD,
        judge=judge,
    )  # fmt: skip
    asks: list[Level] = ["network", "host"]
    for level in LEVELS:
        found = permission.of(PROGRAM, tmp_path, {}, level, unruled=("`PATH` is given to it.",))
        assert bool(found.missed) == (level in asks), level
        assert found.missed[1:] == (("`PATH` is given to it.",) if level in asks else ())
        assert found.rules == ()
    bare = replace(permission, held=())
    assert not bare.of("ls", tmp_path, {}, None).missed
    assert bare.of("ls", tmp_path, {}, None, unruled=("`PATH` is given to it.",)).missed


def test_a_rule_of_an_older_store_means_the_host(tmp_path: Path) -> None:
    rule = json.dumps([shutil.which("git"), ["--version"], ""])
    assert load_rule(rule).level == "host"
    judge = Judge(workspace=tmp_path, path=os.environ["PATH"], allowlist=())
    permission = Permission(
        security="allowlist", asking="on-miss", fallback="deny", in_sandbox="ask", network="ask", held=HELD,
        judge=judge, grants=lambda session: ("call:something", f"exec:{rule}"),
    )  # fmt: skip
    for needs, wanted in (("host", "host"), ("work", "work"), (None, "host")):
        assert permission.of(PROGRAM, tmp_path, {}, cast("Level | None", needs)) == Verdict(cast(Level, wanted), ())


async def verdict(root: Path, command: str, **settings: Any) -> str:
    """As `Outcome`, of a call of `exec` on a machine without a sandbox."""
    try:
        ask = await asked(root, command, **settings)
    except Refused:
        return "refused"
    return "run" if ask is None else f"ask{'!' * ask.runs_unanswered}{'+' * bool(ask.grants)}"


async def asked(root: Path, command: str, session: str = "session", call: Any = None, **settings: Any) -> Ask | None:
    parameters = ExecParameters.model_validate({"command": command, **(call or {})})
    return await commands(root, **settings).exec.asks(parameters, Notes().context(session_key=session))


async def test_what_nobody_has_decided_does_not_run(tmp_path: Path) -> None:
    """Whoever calls it: a decision that is missing, or is about something else, stops it."""
    tool = commands(tmp_path).exec
    parameters = ExecParameters(command=OTHER)
    ask = await tool.asks(parameters, Notes().context())
    assert ask is not None
    for decision in (
        None,
        Decision("once", "0" * 64, ""),
        Decision("denied", ask.digest, ""),
        Decision("expired", ask.digest, ""),
    ):
        notes = Notes()
        with pytest.raises(ToolError, match="It was not executed"):
            await tool.run(parameters, replace(notes.context(), decision=decision))
        assert notes.started == []
    assert not (tmp_path / "made").exists()
    await tool.run(parameters, replace(Notes().context(), decision=Decision("once", ask.digest, "")))
    assert (tmp_path / "made").exists()


async def test_a_request_says_everything_that_will_happen(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    call = {"cwd": "sub", "env": {"MODE": "a\u202eb"}, "background": True}
    ask = await asked(tmp_path, OTHER, call=call, security="allowlist")
    assert ask is not None
    assert ask.subject == OTHER
    assert ask.is_code
    assert ask.why[0].startswith("No sandbox holds commands in here")
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
    granted: Any = {"security": "allowlist", "grants": lambda session: ("call:something", grant)}
    assert await verdict(tmp_path, OTHER, **granted) == "run"
    assert await verdict(tmp_path, "touch other", **granted) == "ask+"
    assert await verdict(tmp_path, f"{OTHER} && touch other", **granted) == "ask+"
    (tmp_path / "sub").mkdir()
    assert await verdict(tmp_path, OTHER, call={"cwd": "sub"}, **granted) == "ask+"
    for more in (f"{OTHER} > ../out", f"{OTHER} $(touch x)", f"{OTHER}; rm -rf sub", f"X=1 LD_PRELOAD=./x.so {OTHER}"):
        assert (await verdict(tmp_path, more, **granted)).startswith("ask"), more


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
    for call in calls:
        with pytest.raises(ValueError, match="cannot be the name of a variable"):
            ExecParameters.model_validate({"command": OTHER, **call})
    for call in ({"cwd": "missing"}, {"cwd": "link"}, {"cwd": ".."}):
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
    ask = await asked(tmp_path, "echo hello", **alone)
    assert ask is not None
    assert "There is no bash on this machine" in ask.why[-1]
    assert ask.grants == ()


async def test_what_is_written_to_a_command_is_asked_about_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter runs what it reads, and nobody knows which of them is one."""
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)
    monkeypatch.setattr("agent.tools.background.END_SECONDS", 0.01)
    context = Notes().context()
    table: list[tuple[Security, Asking]] = [("allowlist", "on-miss"), ("full", "on-miss"), ("full", "always")]
    for security, ask in table:
        made = commands(tmp_path, security=security, ask=ask)
        await run_allowed(made.exec, ExecParameters(command="cat", background=True), context)
        (one,) = made.background.of("session")
        digests = set()
        for text, eof in (("rm -rf .\n", False), ("rm -rf .\n", True), ("ls\n", False)):
            written = ProcessParameters(action="input", id=one.name, text=text, eof=eof)
            found = await made.process.asks(written, context)
            assert found is not None, (security, ask)
            assert (found.subject, found.grants) == (text, ())
            assert one.name in found.why[0]
            digests.add(found.digest)
        assert len(digests) == 3
        assert await made.process.asks(ProcessParameters(action="input", id=one.name, eof=True), context) is None
        assert await made.process.asks(ProcessParameters(action="kill", id=one.name), context) is None
        await made.background.close(10)
    made = commands(tmp_path, security="allowlist", ask="off", allowlist=("cat",))
    await made.exec.run(ExecParameters(command="cat", background=True), context)
    (one,) = made.background.of("session")
    with pytest.raises(Refused, match="may do anything with it"):
        await made.process.asks(ProcessParameters(action="input", id=one.name, text="x"), context)
    await made.background.close(10)
