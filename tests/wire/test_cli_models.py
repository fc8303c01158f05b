"""Programs of the command line as models: the real client and the real sandbox, with stand-ins for the programs."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Mark, Message, Text, Thinking, Usage
from agent.models import build
from agent.models.base import Alive, Answer, CommandLine, ModelRequest, ModelSpec, StreamPart, TextDelta, ThinkingDelta
from agent.models.cli import client as cli_client
from agent.models.cli.client import CliClient
from agent.sandbox.proof import Setting, choose
from tests.agent.models.makers import assistant, call, request, results, user
from tests.standins.cli_programs import CliProgram
from tests.watch import PATIENCE

Name = Literal["claude", "codex", "gemini"]
NAMES: tuple[Name, ...] = get_args(Name)


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    sandbox = choose("auto").sandbox
    if sandbox is None or "network" not in sandbox.levels:
        pytest.skip(choose("auto").why)


@pytest.fixture(params=NAMES)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> CliProgram:
    return CliProgram(tmp_path, request.param)


@pytest.fixture
def claude(tmp_path: Path) -> CliProgram:
    return CliProgram(tmp_path, "claude")


def client(program: CliProgram, sandbox: Setting = "auto", model: str = "some-model", **options: Any) -> CliClient:
    command = CommandLine(
        program=str(program.file), home=program.home, temporary=program.file.parent / "commands", sandbox=sandbox
    )
    made = build(ModelSpec(provider="house", api="cli", model=model, command=command, thinks=True, **options))
    assert isinstance(made, CliClient)
    return made


def asked(*messages: Message, **options: Any) -> ModelRequest:
    return request(*(messages or (user("How are you?"),)), **{"for_owners": True, **options})


async def parts(of: CliClient, to: ModelRequest) -> list[StreamPart]:
    async with aclosing(of.stream(to)) as stream:
        return [part async for part in stream]


async def answer(of: CliClient, to: ModelRequest) -> Answer:
    last = (await parts(of, to))[-1]
    assert isinstance(last, Answer)
    return last


async def failure(of: CliClient, to: ModelRequest) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await parts(of, to)
    return raised.value


def running(program: CliProgram) -> list[str]:
    """The command lines of processes that the program is, or has started."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if (str(program.home) in line or str(program.file) in line) and "-c \nimport" not in line:
                found.append(line)
    return found


def until_gone(program: CliProgram) -> None:
    while running(program):
        time.sleep(0.01)


def said(call: dict[str, Any]) -> list[dict[str, str]]:
    """What a program was sent, behind the words about it."""
    return [json.loads(line) for line in call["given"].split("\n")[1:]]


async def test_an_answer_is_streamed_with_its_usage(program: CliProgram) -> None:
    program.plays(thinking="" if program.file.name == "gemini" else "Hm.")
    found = await parts(client(program), asked())
    assert "".join(part.text for part in found if isinstance(part, TextDelta)) == "I am fine."
    last = found[-1]
    assert isinstance(last, Answer)
    assert (last.message.text, last.stop_reason) == ("I am fine.", "end")
    assert (last.usage.input, last.usage.output, last.usage.cache_read) == (15, 5, 10)
    if program.file.name != "gemini":
        assert [part.text for part in found if isinstance(part, ThinkingDelta)] == ["Hm."]


@pytest.mark.parametrize("name", ["bubblewrap", "sandlock", "seatbelt"])
async def test_each_sandbox_holds_it(claude: CliProgram, name: Setting) -> None:
    sandbox = choose(name).sandbox
    if sandbox is None or "network" not in sandbox.levels:
        pytest.skip(choose(name).why)
    assert (await answer(client(claude, name), asked())).message.text == "I am fine."
    assert claude.calls[0]["seen"] == (["claude"] if name == "bubblewrap" else [])
    assert not list((claude.file.parent / "commands").iterdir())


async def test_the_whole_conversation_is_sent_as_text(program: CliProgram) -> None:
    talk = (user("Look."), assistant("I do.", call("a")), results(("a", "seen\n{")), user("And?"))
    await answer(client(program), asked(*talk))
    first, *rest = said(program.calls[0])
    assert first["instructions"].startswith("Be brief.")
    assert "No tool can be called" in first["instructions"]
    assert rest == [
        {"person": "Look."},
        {"you": "I do."},
        {"you called read": '{"path": "a"}'},
        {"result of read": "seen\n{"},
        {"person": "And?"},
    ]
    assert not any("Look" in word for word in program.calls[0]["words"])


async def test_a_session_goes_on_with_what_is_new(program: CliProgram) -> None:
    one = client(program)
    first = await answer(one, asked(user("a")))
    second = await answer(one, asked(user("a"), first.message, user("b")))
    assert said(program.calls[1]) == [{"person": "b"}]
    program.plays(answer="Third.")
    await answer(one, asked(user("a"), first.message, user("b"), second.message, user("c")))
    assert said(program.calls[2]) == [{"person": "c"}]


async def test_a_session_goes_on_though_what_was_recalled_is_not_sent_again(program: CliProgram) -> None:
    one, recalled = client(program), Message("user", (Text("remembered"),), mark=Mark.RECALLED)
    first = await answer(one, asked(user("a"), recalled))
    assert {"person": "remembered"} in said(program.calls[0])
    await answer(one, asked(user("a"), first.message, user("b")))
    assert said(program.calls[1]) == [{"person": "b"}]


@pytest.mark.parametrize(
    "changed",
    [
        lambda talk: asked(user("other"), *talk[1:]),
        lambda talk: asked(*talk, system="Other instructions."),
        lambda talk: asked(*talk[:1], Message("assistant", talk[1].parts, "house/other"), *talk[2:]),
    ],
)
async def test_a_session_that_saw_something_else_is_left(
    program: CliProgram, changed: Callable[[tuple[Message, ...]], ModelRequest]
) -> None:
    one = client(program)
    first = await answer(one, asked(user("a")))
    await answer(one, changed((user("a"), first.message, user("b"))))
    assert "instructions" in said(program.calls[1])[0]


async def test_after_a_restart_a_session_goes_on_only_where_it_cannot_hold_more(program: CliProgram) -> None:
    first = await answer(client(program), asked(user("a")))
    await answer(client(program), asked(user("a"), first.message, user("b")))
    assert ("instructions" in said(program.calls[1])[0]) == (program.file.name != "claude")


async def test_a_call_that_broke_off_leaves_nothing_in_the_conversation(program: CliProgram) -> None:
    one = client(program)
    first = await answer(one, asked(user("a")))
    program.plays(fails="overloaded", plainly=True)
    await failure(one, asked(user("a"), first.message, user("lost")))
    program.plays()
    last = await answer(one, asked(user("a"), first.message, user("b")))
    session = json.loads([part for part in last.message.parts if isinstance(part, Thinking)][-1].signature)["cli"]
    assert "lost" not in program.session(session)


async def test_a_session_that_is_gone_begins_anew(program: CliProgram) -> None:
    one = client(program)
    first = await answer(one, asked(user("a")))
    for file in program.home.glob("*.session"):
        file.unlink()
    assert (await answer(one, asked(user("a"), first.message, user("b")))).message.text == "I am fine."
    assert "instructions" in said(program.calls[-1])[0]


async def test_only_owners_are_answered(program: CliProgram) -> None:
    error = await failure(client(program), asked(for_owners=False))
    assert error.kind is ErrorKind.OWNERS_ONLY
    assert program.calls == []


async def test_without_a_sandbox_nothing_is_started(program: CliProgram) -> None:
    error = await failure(client(program, "none"), asked())
    assert error.kind is ErrorKind.UNSAFE
    assert "runs in a sandbox alone" in error.detail
    assert program.calls == []


async def test_a_program_that_offers_tools_gets_no_words(program: CliProgram) -> None:
    program.plays(tools=("apply_patch",))
    error = await failure(client(program), asked())
    assert error.kind is ErrorKind.UNSAFE
    assert "offers its model (apply_patch)" in error.detail
    assert len(program.calls) == (1 if program.file.name == "claude" else 0)  # it lists them before it asks its model


async def test_a_program_is_proved_once_and_again_when_its_file_changes(program: CliProgram) -> None:
    one = client(program)
    await answer(one, asked())
    program.plays(tools=("apply_patch",))
    if program.file.name != "claude":
        await answer(one, asked())
        program.file.write_text(program.file.read_text() + "\n")
    assert (await failure(one, asked())).kind is ErrorKind.UNSAFE


async def test_a_tool_that_is_used_ends_the_program(program: CliProgram) -> None:
    program.plays(uses="rm")
    async with asyncio.timeout(PATIENCE):
        error = await failure(client(program), asked())
    assert error.kind is ErrorKind.UNSAFE
    assert "used a tool" in error.detail


async def test_it_sees_no_key_and_nothing_but_its_own_folder(
    program: CliProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    (program.home.parent / "other").mkdir()
    await answer(client(program), asked())
    [made] = program.calls
    assert "secret" not in json.dumps(made["environment"])
    assert made["environment"]["HOME"] != str(program.home)
    assert made["seen"] in ([], [program.file.name])


@pytest.mark.parametrize(
    ("play", "kind", "words"),
    [
        ({"logged_in": False}, ErrorKind.AUTH, "to log in: "),
        ({"fails": "You've hit your session limit · resets 8pm"}, ErrorKind.RATE_LIMIT, "session limit"),
        ({"fails": "Model overloaded"}, ErrorKind.OVERLOADED, "overloaded"),
        ({"fails": "prompt is too long"}, ErrorKind.CONTEXT_OVERFLOW, "too long"),
        ({"fails": "Segmentation fault", "plainly": True}, ErrorKind.UNKNOWN, "exit code 1"),
    ],
)
async def test_failures_have_their_kinds(
    program: CliProgram, play: dict[str, Any], kind: ErrorKind, words: str
) -> None:
    program.plays(**play)
    error = await failure(client(program), asked())
    assert error.kind is kind
    assert words in error.detail


async def test_the_end_of_a_limit_is_known(program: CliProgram) -> None:
    program.plays(fails="You've hit your session limit · resets 8pm")
    wait = (await failure(client(program), asked())).retry_after
    assert wait is not None
    assert 7000 < wait <= 7200 if program.file.name == "claude" else wait == 300


async def test_what_a_program_says_of_its_failure_is_no_answer(program: CliProgram) -> None:
    program.plays(fails="You've hit your session limit")
    found: list[StreamPart] = []
    with suppress(ModelError):
        async for part in client(program).stream(asked()):
            found.append(part)
    assert found
    assert not any(isinstance(part, TextDelta) for part in found)


async def test_a_program_that_is_not_installed(program: CliProgram) -> None:
    program.file.unlink()
    error = await failure(client(program), asked())
    assert error.kind is ErrorKind.MODEL_NOT_FOUND
    assert "is not installed" in error.detail


async def test_garbage_among_the_events_is_passed_over(program: CliProgram) -> None:
    program.plays(garbage="Warning: deprecated {\n[1]\n\xff")
    assert (await answer(client(program), asked())).message.text == "I am fine."


async def test_a_program_that_prints_nothing_is_alive_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = CliProgram(tmp_path, "codex")
    one = client(program)
    await answer(one, asked())
    monkeypatch.setattr(cli_client, "_PAUSE", 0.01)
    monkeypatch.setattr(cli_client, "_PAUSES", 10)
    program.plays(silent=True)
    found: list[StreamPart] = []
    with suppress(ModelError):
        async for part in one.stream(asked()):
            found.append(part)
    assert found.count(Alive()) >= 10
    assert (await failure(one, asked())).kind is ErrorKind.TIMEOUT
    assert not running(program)


async def test_an_abort_ends_the_whole_tree(program: CliProgram) -> None:
    program.plays(silent=True)
    stream = client(program).stream(asked())
    async for part in stream:
        if isinstance(part, TextDelta):
            break
    assert running(program)
    await stream.aclose()
    assert not running(program)


_SERVICE = """
import asyncio, sys
from pathlib import Path
from tests.standins.cli_programs import CliProgram
from tests.wire.test_cli_models import asked, client

async def main():
    program = CliProgram(Path(sys.argv[1]), sys.argv[2])
    program.plays(silent=True)
    async for part in client(program).stream(asked()):
        print(type(part).__name__, flush=True)

asyncio.run(main())
"""


async def test_a_crash_of_the_service_ends_the_whole_tree(tmp_path: Path) -> None:
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SERVICE, str(tmp_path), "claude", stdout=asyncio.subprocess.PIPE
    )
    assert service.stdout is not None
    async with asyncio.timeout(PATIENCE):
        while await service.stdout.readline() != b"TextDelta\n":
            pass
        program = CliProgram(tmp_path, "claude")
        assert running(program)
        service.kill()
        await service.wait()
        await asyncio.to_thread(until_gone, program)


@pytest.mark.parametrize(
    ("name", "level", "found"),
    [
        ("claude", "high", "--effort high"),
        ("claude", "x-high", "--effort max"),
        ("codex", "x-high", 'model_reasoning_effort="xhigh"'),
        ("codex", "off", 'model_reasoning_effort="none"'),
    ],
)
async def test_the_level_of_thinking_is_passed_on(tmp_path: Path, name: Name, level: Any, found: str) -> None:
    program = CliProgram(tmp_path, name)
    await answer(client(program), asked(thinking=level))
    assert found in " ".join(program.calls[0]["words"])


async def test_without_a_level_no_option_is_sent(program: CliProgram) -> None:
    await answer(client(program, model="default"), asked())
    words = " ".join(program.calls[0]["words"])
    assert not any(flag in words for flag in ("--effort", "reasoning_effort", "--model"))


async def test_a_name_of_a_model_is_no_option(program: CliProgram) -> None:
    await answer(client(program, model="--resume"), asked())
    assert "--model=--resume" in program.calls[0]["words"]


async def test_claude_without_thinking(claude: CliProgram) -> None:
    await answer(client(claude), asked(thinking="off"))
    assert claude.calls[0]["environment"]["MAX_THINKING_TOKENS"] == "0"


async def test_the_usage_of_claude_counts_all_input(claude: CliProgram) -> None:
    assert (await answer(client(claude), asked())).usage == Usage(15, 5, 10, 2)


def test_the_mark_of_a_session_is_no_words() -> None:
    part = Thinking("", signature='{"cli": "a", "digest": "b"}')
    assert Message("assistant", (Text("x"), part)).text == "x"
