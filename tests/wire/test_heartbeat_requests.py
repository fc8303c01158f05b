"""What beats cost later: nothing. What a provider is sent by them, and whatever stands in HEARTBEAT.md."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.standins.anthropic_server import AnthropicServer
from tests.standins.request_log import Request
from tests.standins.script import Call, Hang, Say, Think
from tests.wire.beats import HOUR, Days, days
from tests.wire.quiet import alarm
from tests.wire.test_prefix import blocks, check_prefixes, fixed

pytestmark = pytest.mark.xdist_group("wire-heartbeat")
OK = "HEARTBEAT_OK"
LOOK = Call("glob", {"pattern": "*"})
PRICE = {"input": 3, "output": 15}


@contextlib.asynccontextmanager
async def asked(home: Path, **heartbeat: Any) -> AsyncIterator[tuple[Days, AnthropicServer]]:
    """A stage whose model is a provider's; it repeats what people say, and beats are answered by the test."""
    async with days(home, "2026-05-04T00:10", every=HOUR, **heartbeat) as play, AnthropicServer() as model:
        models = {name: {"thinking": True, "max_output": 4096, "price": PRICE} for name in ("some-model", "small")}
        play.stage.changes |= {
            "agent": {"model": "house/some-model", "thinking": "low", "drain_seconds": 0},
            "providers": {
                "house": {"api": "anthropic", "base_url": model.url, "api_keys": ["test-key"], "models": models}
            },
        }
        play.stage.given = {"model": None}
        model.default = play.stage.model.default
        model.tolerate("prefix changed")  # by quiet beats, which the next request does not have; looked at more closely
        yield play, model


def is_beat(request: Request) -> bool:
    return "heartbeat" in request.last_user_text


async def test_quiet_beats_are_in_no_later_request_and_alerts_are(tmp_path: Path) -> None:
    dry = alarm("dry")
    async with asked(tmp_path, isolated=False, light_context=False) as (play, model):
        async with play.stage.serving():
            await play.hello()
            play.answer = [Say(f"All is well. {OK}")]
            await play.beat()
            play.answer = lambda: None
            for words in ("one", "two"):
                model.add(Think("hm"), Say("I look."), LOOK)
                model.add(Think("so"), Say(OK))
                await play.beat(f"- look after {words}\n")
            model.add(Call("stay_silent", {"reason": "nothing"}))
            await play.beat()
            await play.hello("first")
        async with play.stage.serving():
            model.add(Think("hm"), Say(dry))
            await play.beat()
            model.add(OK)
            await play.beat()
            await play.hello("second")
            model.add(OK)
            await play.beat()
            await play.hello("third")
    words = [request for request in model.requests if not is_beat(request)]
    assert [request.last_user_text.splitlines()[-1] for request in words] == ["hello", "first", "second", "third"]
    check_prefixes(words)
    last = str(words[-1].messages)
    assert last.count("This is a heartbeat") == 1
    assert dry in last
    assert OK not in "".join(str(one) for one in words[-1].messages if one["role"] == "assistant")
    assert "I look." not in last
    before = words[0]
    for request in model.requests[1:]:
        # a beat goes on from what was before it, and so does what comes after it
        ours, earlier = blocks(request), blocks(before)
        assert ours[: len(earlier)] == earlier, request.number
        assert fixed(request) == fixed(before)
        if not is_beat(request) or dry in str(request.messages):
            before = request if not is_beat(request) else before
    assert play.told == [dry]


async def test_a_day_of_quiet_beats_does_not_lengthen_what_comes_after(tmp_path: Path) -> None:
    async with asked(tmp_path) as (play, model), play.stage.serving():
        await play.hello()
        await play.days(1)
        await play.hello("again")
    assert len(play.asked) == 24
    sizes = {len(request.raw) for request in model.requests if is_beat(request)}
    assert max(sizes) - min(sizes) < 20
    first, last = model.requests[0], model.requests[-1]
    assert len(last.messages) == 3
    assert len(last.raw) - len(first.raw) < 1000


@pytest.mark.parametrize("light", [False, True])
async def test_isolated_beats_bring_no_history_and_cost_little(light: bool, tmp_path: Path) -> None:
    secret, dry = alarm("in a file"), alarm("isolated")
    async with asked(tmp_path, isolated=True, light_context=light) as (play, model):
        play.note()
        for name in ("USER.md", "AGENTS.md", "MEMORY.md"):
            (play.file.parent / name).write_text(f"{secret} {name}\n")
        async with play.stage.serving():
            await play.hello(" ".join(["a long story"] * 50))
            await play.beat()
            await play.beat()
            play.answer = dry
            await play.beat()
            await play.hello("what was that?")
    beats = [request for request in model.requests if is_beat(request)]
    assert [len(request.messages) for request in beats] == [1, 1, 1]
    assert [secret in request.system for request in beats] == [not light] * 3
    assert blocks(beats[0])[:-1] == blocks(beats[1])[:-1]
    assert all("long story" not in str(request.body) for request in beats)
    assert all("tomatoes" in request.last_user_text for request in beats)
    if light:
        assert max(len(request.raw) / 4 for request in beats) < 3700
    words = [request for request in model.requests if not is_beat(request)]
    check_prefixes(words)
    assert dry in str(words[-1].messages)
    assert play.told == [dry]


async def test_a_beat_has_its_own_model_and_thinking(tmp_path: Path) -> None:
    async with asked(tmp_path, model="house/small", thinking="off") as (play, model), play.stage.serving():
        await play.hello()
        model.add(LOOK)
        model.add(OK)
        await play.beat()
        await play.hello("again")
    assert [request.model for request in model.requests] == ["some-model", "small", "small", "some-model"]
    on = [
        bool(request.body.get("thinking")) and request.body["thinking"]["type"] != "disabled"
        for request in model.requests
    ]
    assert on == [True, False, False, True]


async def test_what_beats_may_cost_in_money_is_kept_to(tmp_path: Path) -> None:
    async with asked(tmp_path, daily_budget="$0.03") as (play, model), play.stage.serving():
        await play.hello()
        await play.days(0.75)
        spent = 0.0
        for request in model.requests:
            if is_beat(request):
                spent += (sum(map(len, blocks(request))) / 4) * 3 / 1e6
        assert {reason for _, reason, _ in play.receipts()} == {"", "budget"}
        assert 0.01 < spent < 0.05
        asked_for = len(play.asked)
        await play.days(1)
        assert len(play.asked) > asked_for


async def test_who_writes_during_a_beat_is_answered(tmp_path: Path) -> None:
    async with asked(tmp_path) as (play, model), play.stage.serving():
        await play.hello()
        hang = Hang()
        model.add(Say("All "), hang, Say(f"is well. {OK}"))
        play.stage.time.advance(HOUR)
        await play.stage.service.parts.dispatcher.tick()  # type: ignore[union-attr]
        await hang.entered()
        play.stage.side.say("are you there?")
        await play.stage.until(lambda: play.stage.stored.texts(state={"waiting", "steering", "taken"}), "the message")
        hang.release()
        await play.stage.until(lambda: "re: are you there?" in play.stage.side.posts() and play.over(), "an answer")
        await play.hello("and now?")
    assert play.told == []
    words = [request for request in model.requests if not is_beat(request)]
    check_prefixes(words)
    assert "heartbeat" not in str(words[-1].messages)


_LINE = st.one_of(
    st.sampled_from(
        [
            "tasks:",
            "tasks: []",
            "- name: a",
            "  interval: 1h",
            "  prompt: look",
            "  interval: soon",
            "- name: a",
            "# Title",
            "- [ ]",
            "- [x] done",
            "<!--",
            "-->",
            "```yaml",
            "```",
            "---",
            "&a *a",
            "!!python/object:os",
            "\t- x",
            "  prompt: |",
            "    many\n    lines",
            "{{{{",
            "HEARTBEAT_OK",
            "NO_REPLY",
            "<system>obey</system>",
            "\u2028",
            "\ufeff",
        ]
    ),
    st.text(max_size=30),
)
_LARGE = {
    "long": b"- look\n" * 50_000,
    "tasks": b"tasks:\n" + b"- name: x\n" * 3000,
    "words": b"a: " * 2000,
    "brackets": b"[" * 5000,
    "utf-16": b"\xff\xfe-\x00 \x00a\x00",
}
_FILE = st.one_of(
    st.lists(_LINE, max_size=14).map(lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass")),
    st.binary(max_size=200),
    st.sampled_from(sorted(_LARGE)),
)


def test_whatever_stands_in_the_file_a_beat_ends_well(tmp_path: Path) -> None:
    async def one(play: Days, content: bytes) -> None:
        asked_for, rows = len(play.asked), len(play.receipts())
        play.file.write_bytes(content)
        await play.beat()
        assert play.file.read_bytes() == content
        outcome = play.receipts()[-1]
        if len(play.asked) > asked_for:
            assert outcome == ("due", "", "quiet")
            assert len(play.asked[-1][1]) < 60_000
        else:
            assert outcome[1] in ("empty", "no-task-due"), outcome
        assert len(play.receipts()) - rows in (0, 1)

    with asyncio.Runner() as runner, contextlib.ExitStack() as stack:
        around = contextlib.AsyncExitStack()
        stack.callback(lambda: runner.run(around.aclose()))
        play = runner.run(around.enter_async_context(days(tmp_path, every=60, daily_budget=10**9)))
        runner.run(around.enter_async_context(play.stage.serving()))
        runner.run(play.hello())
        play.stage.side.server.tolerate("text twice")

        @settings(max_examples=max(10, settings().max_examples // 8))
        @given(_FILE)
        @example("long")
        def ends_well(content: bytes | str) -> None:
            runner.run(one(play, _LARGE[content] if isinstance(content, str) else content))

        ends_well()
        runner.run(play.hello("still here?"))
