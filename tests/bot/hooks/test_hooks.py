"""Hooks of every kind at their points in the real service: files, commands, addresses and those handed in."""

import asyncio
import gc
import json
import os
import sys
import textwrap
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.events import Outcome
from agent.hooks import PATIENCE as HOOK_SECONDS
from agent.hooks import Hook, HookEvent, Hooks
from agent.message import ToolOutput, ToolResult
from agent.tools.base import CallContext, Parameters, Tool
from bot.hooks import calling
from bot.hooks.calling import Beside, as_json
from bot.hooks.points import POINTS, BeforeInstall, Command
from bot.persistence.causes import Cause
from bot.telemetry.redact import MASK, Redactor
from tests.bot.gateway.house import house
from tests.bot.replies.test_showing import Previewing, streaming
from tests.service import Hark, running
from tests.standins.script import Call, Gate, Say
from tests.watch import PATIENCE, LoopTime

TOKEN = "123456-abcdefghijkl"


class Note(Parameters):
    """Arguments of the tool."""

    label: str = ""


class NoteTool(Tool[Note]):
    """Says what it was called with."""

    description = "Notes."
    parameters = Note

    def __init__(self, name: str = "note") -> None:
        self.name = name

    async def run(self, parameters: Note, context: CallContext) -> ToolOutput:
        """See Tool."""
        return ToolOutput(text=f"noted {parameters.label} {TOKEN}")


def put(home: Path, **files: str) -> None:
    """Write files into the folder of hooks."""
    (home / "hooks").mkdir(exist_ok=True)
    for name, text in files.items():
        (home / "hooks" / f"{name}.py").write_text(textwrap.dedent(text))


class Blocking:
    """`code` blocks the thread that runs it, until `release` or the end of the context."""

    def __init__(self, home: Path) -> None:
        self._pipe = home / "pipe"
        self._writer: int | None = None
        self.code = f"open({str(self._pipe)!r}).close()"

    def __enter__(self) -> "Blocking":
        os.mkfifo(self._pipe)
        return self

    def release(self) -> None:
        """Let all calls go on, and those that come later."""
        if self._writer is None:
            self._writer = os.open(self._pipe, os.O_RDWR)

    def __exit__(self, *error: object) -> None:
        self.release()
        assert self._writer is not None
        os.close(self._writer)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code)]


@asynccontextmanager
async def noting(home: Path, hooks: dict[str, Any] | None = None, given: tuple[Hook, ...] = ()) -> AsyncIterator[Hark]:
    """A service with the tool, the hooks of its folder, and others."""
    config = {"hooks": hooks or {}, "gateway": {"token": TOKEN}}
    async with running(home, tools=lambda watch: [NoteTool(), NoteTool("keep")], config=config, hooks=given) as hark:
        yield hark


async def told(hark: Hark, label: str = "it", tool: str = "note") -> str:
    """What the model is told of a call."""
    await hark.say("go", answers=[Call(tool, {"label": label}), "done"])
    (result,) = (part for part in hark.model.requests[-1].messages[-1].parts if isinstance(part, ToolResult))
    return result.text


GUARDS = {
    "blocks": ('return {"block": True, "reason": "not today"}', "Not executed: not today."),
    "cancels": ('return {"cancel": True}', "Not executed: a hook forbids it."),
    "raises": ('raise KeyError("x")', "Not executed: a hook has failed (guard.py: KeyError: 'x')."),
    "ends": (
        "raise SystemExit(3)",
        "Not executed: a hook has failed (guard.py: RuntimeError: it raised SystemExit(3)).",
    ),
    "hangs": ("await asyncio.sleep(3600)", "Not executed: a hook has failed (guard.py: it took longer than 0.05 s)."),
    "stops its thread": (
        "blocks()",
        "Not executed: a hook has failed (guard.py: it took longer than 0.05 s).",
    ),
    "talks nonsense": (
        'return {"verdict": "deny"}',
        "Not executed: a hook has failed (guard.py: ValueError: it answered `verdict`; at before_tool_call it may"
        " answer block, reason, tool_input).",
    ),
    "is interrupted": (
        "raise KeyboardInterrupt",
        "Not executed: a hook has failed (guard.py: RuntimeError: it raised KeyboardInterrupt()).",
    ),
    "says no boolean": (
        'return {"block": "yes"}',
        "Not executed: a hook has failed (guard.py: ValueError: `block` and `cancel` are true or false).",
    ),
}


@pytest.mark.parametrize("body", GUARDS)
async def test_a_guard_of_a_file_forbids_a_call_and_fails_shut(tmp_path: Path, body: str) -> None:
    code, words = GUARDS[body]
    limit = "TIMEOUT = 0.05" if "longer" in words else ""
    with Blocking(tmp_path) as blocking:
        code = code.replace("blocks()", blocking.code)
        put(tmp_path, guard=f"import asyncio\n{limit}\nasync def before_tool_call(event):\n    {code}\n")
        async with noting(tmp_path) as hark:
            assert await told(hark) == words
            assert hark.stored.calls("state") == [("denied",)]


async def test_higher_ones_come_first_and_the_first_block_is_the_last_word(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_low="""
        async def before_tool_call(event):
            return {"tool_input": {"label": event.tool_input["label"] + " low"}, "block": False}
        """,
        b_high="""
        PRIORITY = 5
        async def before_tool_call(event):
            if event.tool_input["label"] == "no":
                return {"block": True, "reason": "high says no"}
            return {"tool_input": {"label": event.tool_input["label"] + " high"}}
        """,
        c_last="""
        PRIORITY = -1
        async def before_tool_call(event):
            if event.tool_input["label"] == "no":
                return {"block": True, "reason": "never asked"}
            return False
        """,
    )
    async with noting(tmp_path) as hark:
        assert (await told(hark)).startswith("noted it high low ")
        assert await told(hark, "no") == "Not executed: high says no."


async def test_results_are_changed_before_they_are_kept_and_hold_no_secrets(tmp_path: Path) -> None:
    put(
        tmp_path,
        result="""
        async def tool_result_persist(event):
            return {"text": f"[{event.text}]"}
        """,
    )
    seen = asyncio.Queue[HookEvent]()
    async with noting(tmp_path, given=(Hook(point="after_tool_call", name="seen", call=seen.put),)) as hark:
        assert await told(hark) == f"[noted it {MASK}]"
        event = await seen.get()
        assert getattr(event, "text", "") == f"[noted it {MASK}]"


async def test_an_observer_that_fails_changes_nothing(tmp_path: Path) -> None:
    put(
        tmp_path,
        bad="""
        async def tool_result_persist(event):
            raise ValueError("no")
        async def agent_end(event):
            return {"block": True}
        async def before_prompt_build(event):
            return {"added": 5}
        """,
    )
    async with noting(tmp_path) as hark:
        assert await told(hark) == f"noted it {MASK}"


COMMANDS = {
    "forbids by its code": ("sys.exit(sys.stderr.write('by code') and 2)", "Not executed: by code."),
    "forbids by its answer": (
        "print(json.dumps({'block': True, 'reason': event['tool_name'] + event['tool_input']['label']}))",
        "Not executed: noteit.",
    ),
    "changes": ("print(json.dumps({'tool_input': {'label': 'changed'}}))", f"noted changed {MASK}"),
    "says nothing": ("pass", f"noted it {MASK}"),
    "fails": ("sys.exit(1)", "Not executed: a hook has failed (hooks.before_tool_call[0]: ValueError: it ended with"),
    "talks without end": (
        "[print('x' * 99_999, flush=True) for _ in range(10**6)]",
        "Not executed: a hook has failed (hooks.before_tool_call[0]: TooMuch: it prints more than 1,000,000 bytes",
    ),
    "does not listen": ("os.close(0)", f"noted it {MASK}"),
    "is no JSON": ("print('yes')", "Not executed: a hook has failed (hooks.before_tool_call[0]: ValueError: it answer"),
    "hangs": ("time.sleep(60)", "Not executed: a hook has failed (hooks.before_tool_call[0]: it took longer than"),
    "has no secrets": (
        "print(json.dumps({'block': 'K' + 'EY' in str(os.environ), 'reason': str(os.environ)}))",
        f"noted it {MASK}",
    ),
}


@pytest.mark.parametrize("does", COMMANDS)
async def test_a_command_gets_json_and_decides(tmp_path: Path, does: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    code, words = COMMANDS[does]
    command = python(f"import json, os, sys, time\nevent = json.load(sys.stdin)\n{code}")
    timeout = 0.1 if does == "hangs" else 20
    hooks = {"before_tool_call": [{"command": command, "matcher": "no.*|x", "timeout": timeout}]}
    async with noting(tmp_path, hooks) as hark:
        assert (await told(hark)).startswith(words)
        assert (await told(hark, tool="keep")).startswith("noted it"), "the matcher is for other tools"


OF_CLAUDE_CODE: dict[str, tuple[dict[str, Any], str]] = {
    "a decision": ({"decision": "block", "reason": "no"}, "Not executed: no."),
    "an approval": ({"decision": "approve", "reason": "fine", "suppressOutput": True}, "noted it "),
    "an end": ({"continue": False, "stopReason": "enough"}, "Not executed: enough."),
    "no end": ({"continue": True, "systemMessage": "hm"}, "noted it "),
    "a denial": (
        {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not that"}},
        "Not executed: not that.",
    ),
    "a change": (
        {"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"label": "other"}}},
        "noted other ",
    ),
    "a question": (
        {"hookSpecificOutput": {"permissionDecision": "ask"}},
        "Not executed: a hook has failed (hooks.before_tool_call[0]: ValueError: it answered the decision 'ask'; "
        "approve, allow, block and deny are taken).",
    ),
}


@pytest.mark.parametrize("what", OF_CLAUDE_CODE)
async def test_what_a_hook_of_claude_code_answers_is_understood(tmp_path: Path, what: str) -> None:
    answer, words = OF_CLAUDE_CODE[what]
    command = python(f"import json, sys\nassert json.load(sys.stdin)['session_id']\nprint({json.dumps(answer)!r})")
    hooks = {"before_tool_call": [{"command": command, "matcher": "*", "timeout": 20}]}
    async with noting(tmp_path, hooks) as hark:
        assert (await told(hark)).startswith(words)


async def test_a_file_that_blocks_its_thread_holds_up_no_other_file(tmp_path: Path) -> None:
    put(
        tmp_path,
        guard="""
        from __future__ import annotations
        from dataclasses import dataclass
        @dataclass
        class Seen:
            count: int = 0
        async def before_tool_call(event):
            Seen.count += 1
            return {"tool_input": {"label": f"call {Seen.count}"}}
        """,
    )
    with Blocking(tmp_path) as blocking:
        put(tmp_path, blocks=f"async def after_tool_call(event):\n    {blocking.code}\n")
        async with noting(tmp_path) as hark:
            assert (await told(hark)).startswith("noted call 1")
            assert (await told(hark)).startswith("noted call 2"), "while the other one blocks"
            blocking.release()


async def test_a_file_that_never_ends_its_calls_is_not_called_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "_ALIVE", 0.0)
    monkeypatch.setattr(calling, "_MOST_LEFT", 1)
    begun = tmp_path / "begun"
    with Blocking(tmp_path) as blocking:
        code = f"    with open({str(begun)!r}, 'a') as file:\n        file.write('x')\n    {blocking.code}\n"
        put(tmp_path, guard=f"async def before_tool_call(event):\n{code}")
        async with noting(tmp_path) as hark:
            time = LoopTime()
            for number in (1, 2):
                telling = asyncio.create_task(told(hark))
                async with asyncio.timeout(PATIENCE):
                    while not begun.exists() or begun.stat().st_size < number:  # noqa: ASYNC110
                        await asyncio.sleep(0)
                await time.advance(HOOK_SECONDS)
                assert "it took longer" in await telling
            assert "RuntimeError: too many of its calls never ended" in await told(hark)


async def test_a_call_behind_one_that_never_ended_is_not_begun_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(calling, "_ALIVE", 0.0)
    begun, gate, beside, others = threading.Event(), threading.Event(), Beside(), {*threading.enumerate()}

    async def blocks(event: HookEvent) -> None:
        begun.set()
        gate.wait(PATIENCE)

    async def waits(event: HookEvent) -> None:
        begun.clear()

    event = BeforeInstall(name="x", folder="/tmp")
    calls = [asyncio.create_task(beside.call(blocks, event))]
    await asyncio.sleep(0)
    (thread,) = (one for one in threading.enumerate() if one not in others and one.name == "hooks")
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    calls.append(asyncio.create_task(beside.call(waits, event)))
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    while beside._loop is not None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    gate.set()
    await asyncio.to_thread(thread.join, PATIENCE)
    gc.collect()
    assert begun.is_set(), "it was not called"
    assert "destroyed" not in caplog.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 1_000_001, "Not executed: a hook has failed"),
        (b'HTTP/1.1 200 OK\r\ncontent-length: 32\r\n\r\n{"block": true, "reason": "far"} ', "Not executed: far."),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "noted"),
        (b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n", "Not executed: a hook has failed"),
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n", "Not executed: a hook"),
        (b"", "Not executed: a hook has failed"),
    ],
)
async def test_an_address_gets_a_post_and_decides(tmp_path: Path, answer: bytes, words: str) -> None:
    got = asyncio.Queue[Any]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        got.put_nowait((head.split(b" ")[0], json.loads(await reader.readexactly(length))))
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        hooks = {"before_tool_call": [{"url": f"http://{host}:{port}/"}]}
        async with noting(tmp_path, hooks) as hark:
            assert (await told(hark, TOKEN)).startswith(words)
    method, event = got.get_nowait()
    assert (method, event["hook_event_name"], event["tool_name"]) == (b"POST", "before_tool_call", "note")
    assert event["tool_input"] == {"label": MASK}, "secrets stay here"


async def test_what_leaves_the_process_has_no_secrets() -> None:
    event = BeforeInstall(name="x", folder=f"/tmp/{TOKEN}")
    assert json.loads(as_json(event, Redactor([TOKEN]).clean)) == {
        "hook_event_name": "before_install",
        "name": "x",
        "folder": f"/tmp/{MASK}",
    }


async def test_what_may_not_be_sent_is_in_the_ledger_with_its_cause(tmp_path: Path) -> None:
    put(
        tmp_path,
        sending="""
        async def message_sending(event):
            if "oath" in event.text or "raise" in event.text:
                return {"cancel": True} if "oath" in event.text else 1 / 0
        """,
    )
    sent = asyncio.Queue[Any]()
    async with noting(tmp_path, given=(Hook(point="message_sent", name="sent", call=sent.put),)) as hark:
        assert (await hark.say("one", answers=["an oath"])).texts == []
        assert (await hark.say("two", answers=["raise it"])).texts == []
        assert (await hark.say("three", answers=["fine"])).texts == ["fine"]
        assert (await sent.get()).text == "fine"
        assert hark.stored.deliveries("state", "cause") == [("expired", "hook"), ("expired", "hook"), ("sent", None)]
        (book,) = hark.stored.balance().accounts
        assert (book.answered, book.told, book.unexplained) == (1, 2, ())


async def test_nothing_of_an_answer_is_shown_before_a_guard_has_seen_it_whole(tmp_path: Path) -> None:
    gate = Gate()
    text = "The answer begins here and is long enough. It goes on. And on. The bad end."
    put(tmp_path, sending="async def message_sending(event):\n    return {'block': 'bad' in event.text}\n")
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        await hark.write("a question", answers=[Say(text, chunks=[text[:42], text[42:54], text[54:]], gate=gate)])
        gate.let(2)
        await hark.until(lambda: text[42:54] in [getattr(event, "delta", "") for event in hark.events])
        await hark.time.until_pause(1.0, 2)  # of the store's probe, and of what shows the answer
        assert hark.stored.deliveries("action") == []
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"))
        await hark.delivered()
        assert (hark.channel.sent, hark.stored.deliveries("action", "cause")) == ([], [("send", "hook")])


@pytest.mark.parametrize("mode", ["collect", "steer"])
async def test_a_message_that_is_dropped_reaches_no_model(tmp_path: Path, mode: str) -> None:
    put(
        tmp_path,
        received="""
        async def message_received(event):
            return {"block": "spam" in event.text and event.sender == "1"}
        """,
    )
    async with running(tmp_path, config={"queue": {"mode": mode}}) as hark:
        gate = Gate()
        await hark.write("spam alone", answers=[Say("hm", gate=gate)])
        await hark.write("hello")
        await hark.until(lambda: hark.model.requests, "the request")
        await hark.write("spam while it runs", "and more")
        hark.model.add("later")
        gate.open()
        await hark.until(lambda: hark.stored.balance().accounts[0].pending == 0, "the end")
        assert "spam" not in str(hark.model.requests)
        assert "and more" in str(hark.model.requests[-1])
        assert hark.stored.messages("state", "reason").count(("dropped", Cause.HOOK.value)) == 2
        (book,) = hark.stored.balance().accounts
        assert (book.answered, book.told, book.unexplained) == (2, 2, ())


async def test_what_programs_write_is_asked_about_like_what_people_write(tmp_path: Path) -> None:
    async def received(event: Any) -> object:
        return {"block": "spam" in event.text}

    async with house(tmp_path, reply="hm", hooks=[Hook(point="message_received", name="here", call=received)]) as at:
        assert (await at.show(await at.submit("spam"), wait="20"))["status"] == "aborted"
        assert (await at.show(await at.submit("hello"), wait="20"))["text"] == "hm"
        assert "spam" not in str((await at.model.called()).request)


async def test_a_hook_answers_in_place_of_the_model_or_says_nothing(tmp_path: Path) -> None:
    put(
        tmp_path,
        reply="""
        async def before_agent_reply(event):
            if event.text.endswith("hours"):
                return {"reply": "Nine to five."}
            return {"block": event.text.endswith("nothing")}
        """,
    )
    async with running(tmp_path) as hark:
        assert (await hark.say("your hours")).texts == ["Nine to five."]
        reply = await hark.say("say nothing")
        assert (reply.texts, reply.end.outcome) == ([], Outcome.COMPLETED)
        assert not hark.model.requests
        assert (await hark.say("hi", answers=["hello"])).texts == ["hello"]
        said = [message.text for message in hark.model.requests[-1].messages if message.role == "assistant"]
        assert said == ["Nine to five."], "the model sees what was said"
        assert hark.stored.balance().accounts[0].answered == 3


async def test_prompt_files_and_model_are_what_hooks_make_of_them(tmp_path: Path) -> None:
    put(
        tmp_path,
        prompt="""
        async def before_prompt_build(event):
            return {"added": event.added + "Speak like a sailor."}
        async def agent_bootstrap(event):
            return {"files": {**event.files, "AGENTS.md": "Only this."}}
        async def before_model_resolve(event):
            return {"model": "test/other"}
        """,
    )
    async with running(tmp_path) as hark:
        named, said = (await hark.say("hi", answers=["aye"])).texts
        assert ("`test/other`" in named, said) == (True, "aye"), "the double of a model has one name only"
        system = hark.model.requests[-1].system
        assert "Speak like a sailor." in system
        assert '<file name="AGENTS.md">\nOnly this.\n</file>' in system


async def test_each_point_of_a_life_is_told(tmp_path: Path) -> None:
    seen = list[str]()

    def watching(point: str) -> Hook:
        async def call(event: HookEvent) -> None:
            detail = f" {event.name}" if isinstance(event, Command) else f" {getattr(event, 'outcome', '')}"
            seen.append(f"{event.point}{detail}".strip())

        return Hook(point=point, name=point, call=call)

    async with running(tmp_path, hooks=[watching(point) for point in POINTS]) as hark:
        await hark.say("hi", answers=["hello"])
        await hark.write("/new")
        await hark.until(lambda: "command new" in seen or hark.channel.texts()[1:], "the answer")
        await hark.say("hi", answers=["again"])
        await hark.until(lambda: hark.stored.balance().accounts[0].pending == 0, "the end")
    order = [*("message_received", "agent_bootstrap", "before_prompt_build", "before_agent_reply", "message_sending")]
    assert [one for one in dict.fromkeys(seen) if one in order] == order
    assert {one.partition(" ")[0] for one in seen} == {*POINTS} - {
        *("before_tool_call", "after_tool_call", "tool_result_persist", "before_install"),
        *("before_compaction", "after_compaction"),
    }
    for one, count in {"gateway_start": 1, "gateway_stop": 1, "command new": 1, "session_end": 1}.items():
        assert seen.count(one) == count, one
    assert (seen.count("session_start"), seen.count("agent_end completed"), seen[-1]) == (2, 2, "gateway_stop")


async def test_events_say_who_wrote_what_and_how_it_ended(tmp_path: Path) -> None:
    seen = dict[str, Any]()

    def watching(point: str) -> Hook:
        async def call(event: HookEvent) -> None:
            seen[point] = event

        return Hook(point=point, name=point, call=call)

    points = ("message_received", "session_start", "before_tool_call", "agent_end")
    async with noting(tmp_path, given=tuple(watching(point) for point in points)) as hark:
        await told(hark)
        await hark.until(lambda: "agent_end" in seen)
        received, end = seen["message_received"], seen["agent_end"]
        message_id = hark.stored.messages("message_id")[0][0]
        assert (received.text, received.message_id, received.files) == ("go", message_id, ())
        assert (end.outcome, end.text, end.error) == ("completed", "done", "")
        assert seen["before_tool_call"].session_id == end.session_id == seen["session_start"].session_id


BROKEN = {
    "a syntax error": "async def before_tool_call(event)\n    return None\n",
    "an import that fails": "import no_such_module\nasync def before_tool_call(event): pass\n",
    "what stands elsewhere": "from no_such_guards import *\n",
    "no async def": "def before_tool_call(event): pass\n",
    "an exit": "before_tool_call = 1\nraise SystemExit\n",
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_guard_that_cannot_be_loaded_lets_nothing_pass(tmp_path: Path, what: str) -> None:
    put(tmp_path, broken=BROKEN[what])
    async with noting(tmp_path) as hark:
        if "*" in BROKEN[what]:  # it may be any guard
            assert (await hark.say("hi", answers=["hello"])).texts == []
            return
        words = "Not executed: the hook broken.py could not be loaded, so nothing passes."
        assert await told(hark) == words


async def test_a_broken_file_without_guards_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, broken="async def agent_end(event)\n")
    async with noting(tmp_path) as hark:
        assert await told(hark) == f"noted it {MASK}"


@pytest.mark.parametrize("kind", ["link", "command"])
async def test_nothing_is_loaded_from_the_workspace(tmp_path: Path, kind: str) -> None:
    (tmp_path / "workspace").mkdir()
    mark = tmp_path / "ran"
    inside = tmp_path / "workspace/x.py"
    inside.write_text(f"open({str(mark)!r}, 'w')\nasync def before_tool_call(event): pass\n")
    put(tmp_path)
    hooks = {"before_tool_call": [{"command": [sys.executable, str(inside)]}]} if kind == "command" else {}
    if kind == "link":
        (tmp_path / "hooks/x.py").symlink_to(inside)
    async with noting(tmp_path, hooks) as hark:
        assert "could not be loaded" in await told(hark)
        assert not mark.exists()


async def test_a_guard_decides_about_what_is_installed() -> None:
    async def call(event: BeforeInstall) -> object:
        return {"block": event.name == "bad", "reason": f"not {event.folder}"}

    hooks = Hooks([Hook(point="before_install", name="x", call=call)])
    assert (await hooks.ask(BeforeInstall(name="bad", folder="/a")))[1] == "not /a"
    assert (await hooks.ask(BeforeInstall(name="good", folder="/a")))[1] is None


async def test_arguments_that_a_guard_cannot_read_are_not_executed(tmp_path: Path) -> None:
    put(tmp_path, guard="async def before_tool_call(event):\n    return {'block': True}\n")
    async with noting(tmp_path) as hark:
        await hark.say("go", answers=[Call("note", '\u00a0{"label": "x"}\u00a0 '), "done"])
        assert "noted" not in str(hark.model.requests[-1].messages[-1])
