"""`hark security audit`: each finding by a configuration that has it, and none of them by one that has not."""

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from agent.shell.rules import Rule, rule_json
from agent.tools.permission import GRANT
from tests import forked
from tests.bot.store.opened import opened
from tests.forked import ENVIRON

TOKEN = "7d5f0e6b1c9a4832bb60"
CLEAN = """
owners: ["telegram:1"]
channels: {telegram: {token: "${BOT}", groups: {allow: {-1: {users: [1]}}}}}
gateway: {token: "file:token"}
tools: {exec: {security: deny}}
"""
DAY = 24 * 3600


def audit(folder: Path, text: str | None = CLEAN, **environ: str) -> tuple[int, list[dict[str, str]]]:
    """The exit code and the findings, of a folder of which nothing else is known."""
    if text is not None:
        (folder / "config.yaml").write_text(text)
    if not (folder / "token").exists():
        (folder / "token").write_text(f"{TOKEN}\n")
        (folder / "token").chmod(0o600)
    given = {**ENVIRON, "BOT": "1:canary", "XDG_STATE_HOME": str(folder / "none"), **environ}
    before = state(folder)
    done = forked.hark(folder, "security", "audit", "--json", environ=given)
    assert done.error == ""
    assert state(folder) == before, "it changes nothing"
    found: list[dict[str, str]] = json.loads(done.out)["findings"]
    assert TOKEN not in done.out
    assert "canary" not in done.out
    for one in found:
        assert set(one) == {"id", "severity", "key", "text", "fix"}
        assert one["fix"]
        assert one["text"]
    return done.code, found


def state(folder: Path) -> list[tuple[str, int, float]]:
    return sorted((str(file), file.stat().st_mode, file.stat().st_mtime) for file in folder.rglob("*"))


def named(found: list[dict[str, str]]) -> set[str]:
    return {one["id"] for one in found}


def test_nothing_above_a_note_is_fine(tmp_path: Path) -> None:
    code, found = audit(tmp_path)
    assert code == 0
    assert named(found) <= {"readable-file", "root"}
    assert {one["severity"] for one in found} <= {"note"}


def changed(**changes: Any) -> str:
    """The clean configuration with some sections in the place of its own."""
    config: dict[str, Any] = {
        "owners": ["telegram:1"],
        "channels": {"telegram": {"token": "${BOT}", "groups": {"allow": {"-1": {"users": [1]}}}}},
        "gateway": {"token": "file:token"},
        "tools": {"exec": {"security": "deny"}},
    }
    return json.dumps({**config, **changes})


def telegram(**more: Any) -> str:
    return changed(channels={"telegram": {"token": "${BOT}", **more}})


def commands(**more: Any) -> dict[str, Any]:
    return {"exec": {"security": "allowlist", "sandbox": "none", **more}}


CASES = {
    "open-policy": ("warning", "channels.telegram.dm.policy", telegram(dm={"policy": "open"})),
    "open groups": ("warning", "channels.telegram.groups.policy", telegram(groups={"policy": "open"})),
    "exec-full-open": (
        "critical",
        "tools.exec.security",
        changed(channels={"telegram": {"token": "${BOT}", "dm": {"policy": "open"}}}, tools=commands(security="full")),
    ),
    "open-tools": (
        "critical",
        "channels.telegram.groups.allow.-1.tools",
        telegram(groups={"allow": {"-1": {"tools": {"profile": "coding"}}}}),
    ),
    "open tools of an account": (
        "critical",
        "channels.telegram.tools",
        telegram(dm={"policy": "open"}, tools={"allow": ["exec"]}),
    ),
    "open tools by sender": (
        "critical",
        "tools.by_sender.telegram:*",
        changed(tools={"exec": {"security": "deny"}, "by_sender": {"telegram:*": {"profile": "full"}}}),
    ),
    "wildcard": ("warning", "channels.telegram.dm.allow_from[0]", telegram(dm={"allow_from": ["*"]})),
    "wildcard owner": ("warning", "owners[0]", changed(owners=["telegram:*"])),
    "gateway-exposed": ("warning", "gateway.host", changed(gateway={"host": "0.0.0.0", "token": "file:token"})),
    "gateway-exposed without a token": ("critical", "gateway.host", changed(gateway={"host": "0.0.0.0"})),
    "gateway-no-token": ("note", "gateway.token", changed(gateway={})),
    "gateway-token-weak": ("warning", "gateway.token", changed(gateway={"token": "${WEAK}"})),
    "gateway-token-weak outside": (
        "critical",
        "gateway.token",
        changed(gateway={"host": "0.0.0.0", "token": "${WEAK}"}),
    ),
    "gateway-token-weak by a word": ("warning", "gateway.token", changed(gateway={"token": "${WORD}"})),
    "gateway-token-weak as refused": ("critical", "gateway.token", changed(gateway={"token": "short"})),
    "webhook-exposed": (
        "warning",
        "channels.slack.listen.host",
        changed(
            channels={
                "slack": {
                    "bot_token": "xoxb-${BOT}",
                    "signing_secret": "${BOT}",
                    "mode": "http",
                    "listen": {"host": "0.0.0.0"},
                }
            }
        ),
    ),
    "webhook-no-secret": (
        "critical",
        "channels.slack.signing_secret",
        changed(channels={"slack": {"bot_token": "xoxb-${BOT}", "mode": "http"}}),
    ),
    "state-in-workspace": ("critical", "state", changed(workspace="w", state="w/state")),
    "secret-in-workspace": ("critical", "workspace", changed(workspace="w", gateway={"token": "file:w/token"})),
    "no-sandbox": ("warning", "tools.exec.sandbox", changed(tools=commands())),
    "no-sandbox and full": ("critical", "tools.exec.sandbox", changed(tools=commands(security="full"))),
    "exec-full": ("note", "tools.exec.security", changed(tools=commands(security="full"))),
    "exec-unasked": ("warning", "tools.exec.ask_fallback", changed(tools=commands(ask_fallback="full"))),
    "broad-rule": (
        "warning",
        "tools.exec.allowlist[1]",
        changed(tools=commands(allowlist=["git push origin *", "rm"])),
    ),
    "broad-rule of a glob": ("warning", "tools.exec.allowlist[0]", changed(tools=commands(allowlist=["/opt/*"]))),
    "broad-rule of a shell": ("warning", "tools.exec.allowlist[0]", changed(tools=commands(allowlist=["bash -c *"]))),
    "key-in-the-clear": ("note", "channels.telegram.token", changed(channels={"telegram": {"token": "1:canary"}})),
    "no-owner": ("note", "owners", changed(owners=[])),
    "payload-log": ("note", "telemetry.payloads", changed(telemetry={"payloads": True})),
    "configuration": ("warning", "agent.max_steps", changed(agent={"max_steps": 0})),
}
CODES = {"note": 0, "warning": 1, "critical": 3}


@pytest.mark.parametrize("case", CASES)
def test_it_is_found(tmp_path: Path, case: str) -> None:
    severity, key, text = CASES[case]
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "token").write_text(TOKEN)
    (tmp_path / "w" / "token").chmod(0o600)
    code, found = audit(tmp_path, text, WEAK="ababababababababababab", WORD="My-Password-2019-xyzuvw")
    one = next(one for one in found if one["key"] == key and one["severity"] == severity)
    expected = case.partition(" ")[0]
    if expected in named([one]) or "-" in expected:
        assert one["id"] == expected
    assert code >= CODES[severity]
    assert code == max(CODES[other["severity"]] for other in found)


@pytest.mark.parametrize(
    ("name", "mode", "severity"),
    [
        ("config.yaml", 0o644, "warning"),
        (".env", 0o640, "warning"),
        ("token", 0o604, "warning"),
        (".env", 0o666, "critical"),
    ],
)
def test_files_that_others_may_read(tmp_path: Path, name: str, mode: int, severity: str) -> None:
    (tmp_path / "config.yaml").write_text(changed(channels={"telegram": {"token": "1:canary"}}))
    (tmp_path / ".env").write_text("A=canary\n")
    (tmp_path / "token").write_text(TOKEN)
    for file in ("config.yaml", ".env", "token"):
        (tmp_path / file).chmod(0o600)
    assert "readable-file" not in named(audit(tmp_path, None)[1])
    (tmp_path / name).chmod(mode)
    code, found = audit(tmp_path, None)
    (one,) = [one for one in found if one["id"] == "readable-file"]
    assert (one["severity"], one["fix"]) == (severity, f"chmod 600 {tmp_path / name}")
    assert code == CODES[severity]
    os.system(one["fix"])
    assert "readable-file" not in named(audit(tmp_path, None)[1])


async def test_the_state_folder_and_what_is_stored(tmp_path: Path) -> None:
    async with opened(tmp_path / "state"):
        pass
    (tmp_path / "config.yaml").write_text(CLEAN)
    (tmp_path / "config.yaml").chmod(0o600)
    (tmp_path / "state").chmod(0o700)
    assert named(audit(tmp_path, None)[1]) <= {"root"}
    now = int(time.time())
    with sqlite3.connect(tmp_path / "state" / "hark.db") as db:
        person = "INSERT INTO person (channel, account, sender, standing, since) VALUES ('telegram','1',?,?,?)"
        for sender, standing, days in (
            ("5", "allowed", 91),
            ("6", "allowed", 89),
            ("7", "blocked", 91),
            ("8", "owner", 91),
        ):
            db.execute(person, (sender, standing, (now - days * DAY) * 1000))
        db.execute(
            "INSERT INTO inbox (channel, account, event_key, kind, sender, accepted_at, payload, state)"
            " VALUES ('telegram','1','m:1:1','message','8',?,'{}','done')",
            ((now - 80 * DAY) * 1000,),
        )
        rules = (Rule("rm", None), Rule("git", ("status",)), Rule("bash", ("-c", "*")))
        for at, rule in enumerate(rules):
            grant = (GRANT + rule_json(rule), f"`{rule.binary}`", "telegram:1", at)
            db.execute("INSERT INTO granted (what, words, granted_by, granted_at) VALUES (?,?,?,?)", grant)
        db.execute(
            "INSERT INTO granted (what, words, granted_by, granted_at) VALUES ('call:1','one call','telegram:1',9)"
        )
    db.close()
    (tmp_path / "state").chmod(0o755)
    (tmp_path / "state" / "hark.db").chmod(0o644)
    code, found = audit(tmp_path, None)
    assert code == 1
    assert {one["fix"] for one in found if one["id"] == "silent-person"} == {"hark people revoke telegram:5"}
    fixes = [one["fix"] for one in found if one["id"] == "broad-grant"]
    assert fixes == ["hark approvals forget 1", "hark approvals forget 3"]
    readable = {one["fix"] for one in found if one["id"] == "readable-file"}
    assert {f"chmod 700 {tmp_path / 'state'}", f"chmod 600 {tmp_path / 'state' / 'hark.db'}"} <= readable
    (tmp_path / "state" / "hark.db").write_bytes(b"broken" * 1000)
    assert "store" in named(audit(tmp_path, None)[1])


@pytest.mark.parametrize(
    "text", ["foo: [", "a: 1\na: 2", "[1]", "", "channels: 3", "state: file:none", "owners: ['${NONE}']"]
)
def test_a_broken_configuration_is_no_traceback(tmp_path: Path, text: str) -> None:
    code, found = audit(tmp_path, text)
    assert code in (0, 1)
    assert bool(text) == ("configuration" in named(found))


def test_a_missing_configuration_is_no_traceback_and_people_read_lines(tmp_path: Path) -> None:
    given = {**ENVIRON, "XDG_STATE_HOME": str(tmp_path / "none")}
    done = forked.hark(tmp_path, "security", "audit", "--config", "missing.yaml", environ=given)
    assert (done.code, done.error) == (1, "")
    assert "configuration: missing.yaml: cannot be read: No such file or directory" in done.out
    assert "fix: " in done.out
    assert list(tmp_path.iterdir()) == []
