"""What the model may use where, and what becomes of what it does: policy, commands, loops, secrets, many at once."""

import contextlib
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from tests.standins.request_log import Request, canonical
from tests.standins.script import Call
from tests.wire.answers import PLATFORMS
from tests.wire.court import DENY, ONCE, Court, Talk, court, run

pytestmark = pytest.mark.xdist_group("wire-tools")
SECRET = "hk-s3cret-of-the-house-0815-4711"


def offered(request: Request) -> set[str]:
    """The tools that the model was offered."""
    return set(request.tool_names)


async def done(at: Court, talk: Talk, name: str, *steps: Any) -> list[str]:
    """Let the model do that; what it was told of its calls."""
    at.says(talk, name, *steps)
    await at.answered(talk, name)
    return at.results(talk, name)


# -- policy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "there", "missing"),
    [
        ({}, {"exec", "process", "read", "write", "edit", "glob", "grep", "message", "ask_person"}, set()),
        ({"profile": "full"}, {"exec", "process", "write", "message", "schedule"}, set()),
        ({"profile": "messaging"}, {"message"}, {"exec", "process", "write", "edit", "web_fetch"}),
        ({"profile": "minimal"}, set(), {"exec", "process", "write", "edit", "message", "schedule"}),
        ({"profile": "coding"}, {"exec", "read", "write", "edit", "glob", "grep", "web_fetch", "web_search"}, set()),
        ({"deny": ["group:runtime"]}, {"write", "web_fetch"}, {"exec", "process"}),
        ({"deny": ["group:web"]}, {"write"}, {"web_fetch", "web_search"}),
        ({"allow": ["group:fs"]}, {"read", "write", "edit", "glob", "grep"}, {"exec", "process", "message"}),
        ({"allow": ["group:fs", "exec"], "deny": ["wri*"]}, {"read", "exec"}, {"write", "process"}),
        ({"profile": "messaging", "allow": ["exec"]}, set(), {"exec", "write"}),
        ({"exec": {"security": "deny"}}, {"write"}, set()),
    ],
)
async def test_the_model_is_offered_what_the_policy_leaves(
    tools: Any, there: set[str], missing: set[str], tmp_path: Path
) -> None:
    async with court(tmp_path, alone=True, tools=tools) as at, at.serving():
        talk = at.meets("telegram")
        calls = [run("cat seed", needs="look"), Call("write", {"path": "w", "content": "x"})]
        results = await done(at, talk, "policy", *calls)
        request = at.requests["telegram", "policy"][0]
        assert there <= offered(request), offered(request)
        assert not missing & offered(request), offered(request)
        assert ("exit code 0" in results[0]) == ("exec" in offered(request) and "exec" not in tools), results
        assert (at.workspace / "w").exists() == ("write" in offered(request)), "what is not offered does nothing"
        before = at.said(talk)
        at.native(talk, "/tools")
        said = await at.told(talk, before, "the tools")
        for name in there:
            assert name in said, said
        for name in missing & {"exec", "write"}:
            assert name in said, f"{name} is not there, and nobody says why: {said}"


async def test_a_group_and_a_sender_only_narrow_and_the_tools_stay_the_same_bytes(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        at = await stack.enter_async_context(court(tmp_path, group=lambda side: {"tools": {"deny": ["write"]}}))
        bobs = [f"{platform}:{at.side(platform).bob}" for platform in PLATFORMS]
        at.stage.changes["tools"] = {"by_sender": {bob: {"deny": ["exec", "group:runtime"]} for bob in bobs}}
        await stack.enter_async_context(at.serving())
        for platform in PLATFORMS:
            alice, bob = at.in_room(platform, "alice"), at.in_room(platform, "bob")
            for who, talk, number in (("alice", alice, 0), ("bob", bob, 1), ("alice", alice, 2)):
                room = at.room_of(talk)
                name = f"room-{number}"
                at.asks_in_room(
                    platform, who, name, run("cat seed", needs="look"), Call("write", {"path": "no", "content": "x"})
                )
                await at.answered(talk, name)
                listed, written = at.results(talk, name)
                assert ("exit code 0" in listed) == (who == "alice"), f"{who} on {platform}: {listed}"
                assert not any((folder / "no").exists() for folder in (at.workspace, room)), written
            requests = [at.requests[platform, f"room-{number}"][0] for number in range(3)]
            assert len({canonical(one.body["tools"]) for one in requests}) == 1, "the set is fixed"
            assert "write" not in offered(requests[0]), "nobody in this room may write"
            assert "exec" in offered(requests[0])
            direct = at.direct(platform, alice.person)
            results = await done(at, direct, "direct", Call("write", {"path": f"{platform}.txt", "content": "x"}))
            assert (at.workspace / f"{platform}.txt").exists(), results


async def test_what_only_owners_may_use_is_not_there_for_others(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        owner, other = at.meets("slack"), at.meets("slack", owner=False)
        for talk, name in ((owner, "owner"), (other, "other")):
            await done(at, talk, name, Call("schedule", {"at": "2031-01-01T10:00:00Z", "prompt": "wake up"}))
        both = [offered(at.requests["slack", name][0]) for name in ("owner", "other")]
        assert ["schedule" in one for one in both] == [True, False]
        assert len([one for (one,) in at.stage.stored.jobs("job_id") if one != "heartbeat"]) == 1


# -- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "listed", "missed"),
    [
        ({"security": "deny"}, "refused", "refused"),
        ({"security": "full", "ask": "off"}, "runs", "refused"),
        ({"security": "full"}, "runs", "asks"),
        ({"security": "full", "ask": "always"}, "asks", "asks"),
        ({"ask": "off"}, "runs", "refused"),
        ({}, "runs", "asks"),
        ({"in_sandbox": "allow", "network": "allow"}, "runs", "asks"),
        ({"allowlist": ["cp -v --backup=numbered seed *"]}, "runs", "runs"),
        ({"allowlist": ["cp -v seed *"]}, "runs", "asks"),
        ({"security": "deny", "ask": "always"}, "refused", "refused"),
    ],
)
async def test_a_command_is_refused_run_or_asked_about(settings: Any, listed: str, missed: str, tmp_path: Path) -> None:
    """listed: what only looks; missed: what is to run on the host."""
    async with court(tmp_path, alone=True, tools={"exec": settings}) as at, at.serving():
        talk = at.meets("telegram")
        for name, command, needs, expected in (
            ("listed", "cat seed | wc -c", None, listed),
            ("missed", at.tally(talk, "missed"), "host", missed),
        ):
            at.says(talk, name, run(command, needs=needs))
            if expected == "asks":
                card = await at.card(talk, command[:10])
                at.press(card, ONCE)
            await at.answered(talk, name)
            (result,) = at.results(talk, name)
            assert ("exit code 0" in result) == (expected != "refused"), f"{name}: {result}"
            assert any(card.buttons for card in at.cards(talk)) is False
        assert at.ran(talk, "missed") == (missed != "refused")
        assert len(at.stage.stored.approvals("state")) == [listed, missed].count("asks")


async def test_variables_of_a_command_on_the_host_are_shown_to_who_is_asked(tmp_path: Path) -> None:
    async with court(tmp_path, tools={"exec": {"allowlist": ["cat **"]}}) as at, at.serving():
        talk = at.meets("telegram")
        for number, variable in enumerate(("LD_PRELOAD", "PATH", "BASH_ENV", "GIT_SSH_COMMAND", "PAGER")):
            looked = await done(at, talk, f"look-{number}", run("cat seed", env={variable: "./evil"}, needs="look"))
            assert "exit code" in looked[-1], "in the sandbox they are its own affair"
        at.says(talk, "host", run("cat seed", env={"LD_PRELOAD": "./evil"}))
        card = await at.card(talk, "LD_PRELOAD")
        at.press(card, DENY)
        await at.answered(talk, "host")
        (*_, refused) = await done(at, talk, "no-name", run("cat seed", env={"A=B": "x"}))
        assert "the name of a variable" in refused
        (*_, said) = await done(at, talk, "all", run("env", needs="look"))
        assert "house-key" not in said


async def test_a_command_in_the_background_is_looked_after(tmp_path: Path) -> None:
    async with court(tmp_path, tools={"exec": {"security": "full", "ask": "off"}}) as at, at.serving():
        talk = at.meets("telegram")
        (begun,) = await done(
            at,
            talk,
            "begin",
            run("echo ready; while read line; do echo got $line; done; echo bye", background=True, needs="look"),
        )
        (listed,) = await done(at, talk, "list", Call("process", {"action": "list"}))
        (ident,) = {one for one in re.findall(r"[a-z]+-[\w-]+", begun) if one in listed}

        async def process(name: str, action: str, **more: Any) -> str:
            (said,) = await done(at, talk, name, Call("process", {"action": action, "id": ident, **more}))
            return said

        await process("write", "input", text="one\n")
        seen = await process("poll", "poll", wait_seconds=5)
        assert "got one" in seen, seen
        other = at.meets("discord", owner=False)
        (theirs,) = await done(at, other, "theirs", Call("process", {"action": "poll", "id": ident}))
        assert "got one" not in theirs, "another session's process"
        (theirs,) = await done(at, other, "kill-theirs", Call("process", {"action": "kill", "id": ident}))
        killed = await process("kill", "kill")
        assert "no " not in killed.lower()[:3], killed
        after = await process("after", "poll")
        assert "running" not in after.lower() or "not running" in after.lower(), after


async def test_long_output_is_kept_where_the_model_can_read_it(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        talk = at.meets("discord")
        lines = "".join(f"line {number:06}\n" for number in range(60_000))
        (at.workspace / "long.txt").write_text(lines)
        (result,) = await done(at, talk, "long", run("cat long.txt", needs="look"))
        assert len(result) < 60_000, len(result)
        assert "line 000000" in result
        assert "line 059999" in result
        paths = re.findall(r"[\w./-]+/[\w./-]+", result.replace("line ", ""))
        found = next((one.rstrip(".") for one in paths if (at.workspace / one.rstrip(".")).is_file()), None)
        assert found, f"no file is named: {result[:300]} … {result[-300:]}"
        (read,) = await done(at, talk, "read", Call("read", {"path": found, "offset": 30_000, "limit": 5}))
        assert "line 0299" in read or "line 0300" in read, read[:500]


async def test_a_model_that_repeats_itself_is_stopped_and_the_person_is_answered(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        steps = {
            "same": [run("cat seed", needs="look")] * 200,
            "pair": [run("cat seed", needs="look"), run("wc -c seed", needs="look")] * 100,
            "ask": [Call("read", {"path": "nope"})] * 200,
        }
        for (name, calls), platform in zip(steps.items(), PLATFORMS, strict=True):
            talk = at.meets(platform)
            at.says(talk, name, *calls)
            await at.until(lambda talk=talk: at.texts(talk) and at.stage.at_rest(), f"the end of {name}", talk)  # type: ignore[misc]
            asked = len(at.requests[platform, name])
            assert asked < 45, f"{name}: {asked} requests"
            results = at.results(talk, name)
            assert len(set(results)) > 1, "the model was told"
            assert at.texts(talk)


# -- secrets ---------------------------------------------------------------------------------------------------------


async def test_a_configured_secret_that_a_command_prints_is_seen_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    long = f"{'x ' * 40_000}{SECRET}{' y' * 40_000}"
    async with court(tmp_path, gateway={"token": SECRET}) as at:
        (at.workspace / "secret.txt").write_text(f"token={SECRET}\n")
        (at.workspace / "long.txt").write_text(long)
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
                first, *_ = at.results(talk, "secret")
                assert "token=" in first, first
        assert not any(SECRET.encode() in one.raw for one in at.play.model.requests)
        for side in at.play.sides.values():
            assert not any(SECRET in text for text in side.shown()), side.name
        assert [name for name, rows in at.stage.stored.everything().items() if SECRET in str(rows)] == []
        kept = [one for one in at.workspace.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]
        assert sorted(one.name for one in kept) == ["long.txt", "secret.txt", "split.txt"], "no copies are kept"
        said = caplog.text + "".join(capsys.readouterr())
        assert SECRET not in said


# -- many at once ----------------------------------------------------------------------------------------------------


async def test_a_hundred_turns_that_wait_hold_up_nobody_and_each_runs_once(tmp_path: Path) -> None:
    count = 34
    async with court(tmp_path, agent={"max_concurrent": 2}) as at:
        async with at.serving() as service:
            talks = [at.meets(platform) for platform in PLATFORMS for _ in range(count)]
            for number, talk in enumerate(talks):
                at.asks(talk, f"many-{number}")
            cards = [await at.card(talk, f"many-{number}") for number, talk in enumerate(talks)]
            assert len(at.stage.stored.approvals(state="open")) == 3 * count
            assert service.parts.lanes.active == 0
            other = at.meets("telegram")
            at.says(other, "other", run("cat seed", needs="look"))
            await at.answered(other, "other")
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
