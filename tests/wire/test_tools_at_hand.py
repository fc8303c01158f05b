"""The tools that the model may use where, and what becomes of what it does with them, on all platforms."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.standins.script import Call
from tests.wire.answers import PLATFORMS
from tests.wire.court import ALWAYS, DENY, ONCE, Court, Talk, court, run

pytestmark = pytest.mark.xdist_group("wire-tools")
SECRET = "hk-s3cret-of-the-house-0815-4711"
LOOKS, WRITES = run("cat seed | wc -c", needs="look"), Call("write", {"path": "w", "content": "x", "mode": "overwrite"})


async def done(at: Court, talk: Talk, name: str, *steps: Any) -> list[str]:
    """Let the model do that; returns what it was told of its calls."""
    at.says(talk, name, *steps)
    await at.answered(talk, name)
    return at.results(talk, name)


@pytest.mark.parametrize(
    ("tools", "looks", "on_host", "writes", "reason"),
    [
        ({}, "runs", "asks", True, ""),
        ({"exec": {"security": "full", "ask": "off"}}, "runs", "refused", True, ""),
        ({"exec": {"security": "full", "ask": "always"}}, "asks", "asks", True, ""),
        (
            {
                "exec": {"allowlist": ["cp -v --backup=numbered seed *"]},
                "deny": ["wri*"],
                "untrusted": {"file": "allow"},  # else what was read before lets the rule ask
            },
            *("runs", "runs", False, "deny"),
        ),
        ({"profile": "messaging"}, "missing", "missing", False, "profile: messaging"),
        ({"exec": {"security": "deny"}}, "missing", "missing", True, "security: deny"),
        ({"require_approval": ["write"]}, "runs", "asks", None, ""),
    ],
)
async def test_a_call_runs_is_asked_about_or_refused_as_the_policy_says(
    tools: Any, looks: str, on_host: str, writes: bool | None, reason: str, tmp_path: Path
) -> None:
    async with court(tmp_path, alone=True, tools=tools) as at, at.serving():
        talk = at.meets("telegram")
        for name, call, words, expected in (
            ("looks", LOOKS, "cat seed", looks),
            ("host", run(at.tally(talk, "host")), "host", on_host),
            ("writes", WRITES, "write", {True: "runs", False: "missing", None: "asks"}[writes]),
        ):
            at.says(talk, name, call)
            if expected == "asks":
                card = await at.card(talk, words)
                assert not (at.workspace / "w").exists()
                at.press(card, ALWAYS if ALWAYS in card.buttons and name == "writes" else ONCE)
            await at.answered(talk, name)
            (result,) = at.results(talk, name)
            ran = "exit code 0" in result or (at.workspace / "w").exists()
            assert ran == (expected in ("runs", "asks")), f"{name}: {result}"
            assert (call.name in at.requests["telegram", name][0].tool_names) == (expected != "missing"), name
        assert at.ran(talk, "host") == (on_host in ("runs", "asks"))
        asked = [looks, on_host].count("asks") + (writes is None)
        assert len(at.stage.stored.approvals("state")) == asked
        if writes is None:
            at.says(talk, "again", WRITES)
            await at.answered(talk, "again")
            assert len(at.stage.stored.approvals("state")) == asked, "the same words are always allowed"
        before = at.said(talk)
        at.native(talk, "/tools")
        said = await at.told(talk, before, "the tools")
        assert ("write" in said, "exec" in said, reason in said) == (True, True, True), f"nobody says why: {said}"


async def test_a_configured_secret_that_a_command_prints_is_seen_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with court(tmp_path, gateway={"token": SECRET}) as at:
        (at.workspace / "secret.txt").write_text(f"token={SECRET}\n")
        (at.workspace / "long.txt").write_text(f"{'x ' * 40_000}{SECRET}{' y' * 40_000}")
        (at.workspace / "split.txt").write_text(f"{'z' * 65_530}{SECRET}")
        async with at.serving():
            for platform in PLATFORMS:
                talk = at.meets(platform)
                at.says(
                    talk,
                    "secret",
                    run("cat secret.txt", needs="look"),
                    Call("read", {"path": "secret.txt"}),
                    Call("grep", {"pattern": "s3cret"}),
                    run("cat long.txt", needs="look"),
                    run("cat split.txt", needs="look"),
                    lambda request: "It says: " + " ".join(text for _, text in request.tool_results)[:300],
                )
                await at.until(lambda talk=talk: any("It says" in text for text in at.texts(talk)), "it", talk)  # type: ignore[misc]
                assert "token=" in at.results(talk, "secret")[0]
        assert not any(SECRET.encode() in one.raw for one in at.play.model.requests)
        for side in at.play.sides.values():
            assert not any(SECRET in text for text in side.shown()), side.name
        assert [name for name, rows in at.stage.stored.everything().items() if SECRET in str(rows)] == []
        kept = [one for one in at.workspace.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]
        assert sorted(one.name for one in kept) == ["long.txt", "secret.txt", "split.txt"], "no copies are kept"
        assert SECRET not in caplog.text + "".join(capsys.readouterr())


@pytest.mark.parametrize("count", [4, pytest.param(34, marks=pytest.mark.soak)])
async def test_turns_that_wait_hold_up_nobody_and_each_runs_once_after_a_restart(count: int, tmp_path: Path) -> None:
    """More on each platform than may run at once."""
    async with court(tmp_path, agent={"max_concurrent": 2}) as at:
        async with at.serving() as service:
            talks = [at.meets(platform) for platform in PLATFORMS for _ in range(count)]
            for number, talk in enumerate(talks):
                at.asks(talk, f"many-{number}")
            cards = [await at.card(talk, f"many-{number}") for number, talk in enumerate(talks)]
            assert len(at.stage.stored.approvals(state="open")) == 3 * count
            assert service.parts.lanes.active == 0
            await done(at, at.meets("telegram"), "other", LOOKS)
        async with at.serving():
            await at.quiet()
            for number, card in enumerate(cards):
                at.press(card, ONCE if number % 6 == 0 else DENY)  # a command costs more than all else
            for number, talk in enumerate(talks):
                await at.answered(talk, f"many-{number}")
            await at.until(at.stage.at_rest, "rest")
        ran = [at.ran(talk, f"many-{number}") for number, talk in enumerate(talks)]
        assert ran == [number % 6 == 0 for number in range(len(talks))]
        assert len(at.stage.stored.approvals("state")) == 3 * count
