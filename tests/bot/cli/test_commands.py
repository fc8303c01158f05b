"""`hark chat`, `hark agent`, `hark status` and the terminal of `hark run`, called as people call them."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import ToolCall
from agent.sandbox import cgroup
from agent.sandbox.proof import choose
from bot import wording
from tests.bot.cli.terminal_emulator import Program
from tests.bot.gateway.house import House, house
from tests.forked import ENVIRON, PATIENCE, Done, begin, fork
from tests.watch import lanes_idle

OFFLINE = "I am Hark's built-in offline model"
NO_OLLAMA = "agent: {model: offline/offline}\n"
"""So that no test depends on what else this machine runs."""


async def hark(folder: Path, *arguments: str, typed: str = "") -> Done:
    return await (await begin(folder, *arguments, piped=True)).finish(typed)


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A folder without a service."""
    (tmp_path / "config.yaml").write_text(NO_OLLAMA)
    return tmp_path


async def test_chat_starts_a_service_of_its_own_and_answers_every_line(alone: Path) -> None:
    done = await hark(alone, "chat", typed="say one\nsay two\n/help new\n/quit\nsay three\n")
    assert (done.code, done.error) == (0, f"A new Hark begins in {alone / 'state'}.\n")
    assert "three" not in done.out
    assert done.out.startswith(OFFLINE)
    assert done.out.index("one\n") < done.out.index("two\n") < done.out.index("`/new [model] [words]` ")
    assert "\x1b" not in done.out
    assert not (alone / "state" / "hark.sock").exists()


async def test_chat_uses_the_service_that_runs(tmp_path: Path) -> None:
    async with house(tmp_path, reply="From the service.") as at:
        done = await hark(tmp_path, "chat", typed="hello")
        assert done == Done(0, "From the service.\n", "")
        assert len(at.stored.deliveries(state="sent")) == 1


async def test_an_interrupt_ends_the_run_of_a_line_and_leaves(tmp_path: Path, at: House) -> None:
    command = await begin(tmp_path, "chat", piped=True)
    command.stdin.write(b"one\n")
    (await at.model.called()).say("One.")
    command.send_signal(signal.SIGINT)
    done = await command.finish()
    assert (done.code, done.error) == (130, "")
    assert len(at.stored.turns(outcome="aborted")) == 1


async def test_a_turn_prints_its_answer_in_a_session_of_its_own(alone: Path) -> None:
    done = await hark(alone, "agent", "-m", "say hello")
    assert (done.code, done.error) == (0, f"A new Hark begins in {alone / 'state'}.\n")
    assert done.out.startswith(OFFLINE)
    assert done.out.endswith("\n\nhello\n")
    again = await hark(alone, "agent", "-m", "say hello")  # it introduces itself once in a session
    assert (again.code, again.out, again.error) == (0, done.out, "")
    for _ in range(2):
        again = await hark(alone, "agent", "-m", "say hello", "--session", "mine")
    assert again == Done(0, "hello\n", "")


async def test_an_answer_is_printed_as_it_comes(tmp_path: Path, at: House) -> None:
    command = await begin(tmp_path, "agent", "-m", "go")
    call = await at.model.called()
    call.say("First. ")
    async with asyncio.timeout(PATIENCE):
        assert await command.stdout.readexactly(6) == b"First."
    call.say("\n\nThen \x1b[31mred.\n")
    call.finish("First. \n\nThen \x1b[31mred.\n", ToolCall("c1", "glob", '{"pattern": "x"}'))
    (await at.model.called()).answer("Last.\n\n")
    assert await command.finish() == Done(0, " \n\nThen [31mred.\n\nLast.\n", "")


async def test_an_answer_that_begins_anew_is_printed_whole(tmp_path: Path, at: House) -> None:
    command = await begin(tmp_path, "agent", "-m", "go")
    call = await at.model.called()
    call.say("Half of it")
    call.fail(ModelError(ErrorKind.NETWORK, "broke off"))
    (await at.model.called()).answer("All of it.")
    assert await command.finish() == Done(0, "Half of it\n\nAll of it.\n", "")


@pytest.mark.parametrize(
    ("arguments", "piped", "heard"),
    [
        (("-m", "review this"), "a\nb\n", "review this\n\na\nb"),
        (("-m", "-"), "a\nb\n", "a\nb"),
        ((), "a\nb\n", "a\nb"),
        (("-m", "only this"), "", "only this"),
    ],
)
async def test_standard_input_is_the_message_or_follows_it(
    tmp_path: Path, arguments: tuple[str, ...], piped: str, heard: str
) -> None:
    async with house(tmp_path, reply="Read.") as at:
        assert await hark(tmp_path, "agent", *arguments, typed=piped) == Done(0, "Read.\n", "")
        assert (await at.model.called()).request.messages[-1].text.partition("\n")[2] == heard


async def test_an_input_that_was_only_inherited_is_not_waited_for(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Read.") as at:
        seconds = {"bot.cli.agent._PATIENCE": 0.1}
        # nobody writes, and nobody closes
        command = await begin(tmp_path, "agent", "-m", "hello", piped=True, seconds=seconds)
        async with asyncio.timeout(PATIENCE):
            assert (await command.stderr.readline()).startswith(b"Nothing came on standard input for 0.1 s")
        assert (await at.model.called()).request.messages[-1].text.endswith("\nhello")
        assert (await command.finish()).out == "Read.\n"


async def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path, at: House) -> None:
    command = await begin(tmp_path, "agent", "-m", "go")
    call = await at.model.called()
    call.say("One line.\n\nAnother")
    async with asyncio.timeout(PATIENCE):
        await command.stdout.readuntil(b"One line.")
    command.stdout._transport.close()  # type: ignore[attr-defined]
    call.say(" line.")
    call.finish("One line.\n\nAnother line.")
    assert await command.stderr.read() == b""
    assert await command.wait() == 0
    assert len(at.stored.turns(outcome="completed")) == 1


@pytest.mark.parametrize("arguments", [("status",), ("agent", "-m", "say one", "--json"), ("chat",)])
async def test_no_command_minds_a_closed_pipe(alone: Path, arguments: tuple[str, ...]) -> None:
    await hark(alone, "agent", "-m", "say one")
    read, write = os.pipe()
    os.close(read)
    writes = _program if arguments == ("status",) else _forked  # the interpreter of a program writes what is left
    code, error = await asyncio.to_thread(writes, write, alone, arguments)
    os.close(write)
    assert (code, error) == (0, b"")


def _program(output: int, folder: Path, arguments: tuple[str, ...]) -> tuple[int | None, bytes]:
    """The exit code and the errors of a command that writes there."""
    command, nothing, pipe = [sys.executable, "-m", "bot", *arguments], subprocess.DEVNULL, subprocess.PIPE
    done = subprocess.run(command, cwd=folder, env=ENVIRON, stdin=nothing, stdout=output, stderr=pipe, timeout=PATIENCE)
    return done.returncode, done.stderr


def _forked(output: int, folder: Path, arguments: tuple[str, ...]) -> tuple[int | None, bytes]:
    """The same of a forked one, to which two words are typed."""
    with tempfile.TemporaryFile() as typed, tempfile.TemporaryFile() as error:
        typed.write(b"say two\n")
        typed.seek(0)
        process = fork(arguments, folder, ENVIRON, [typed.fileno(), output, error.fileno()])
        process.join(PATIENCE)
        error.seek(0)
        return process.exitcode, error.read()


async def test_a_model_can_be_chosen_where_no_service_runs(alone: Path) -> None:
    (alone / "config.yaml").write_text("agent: {model: openai/none}\nproviders: {openai: {api_keys: [k]}}\n")
    done = await hark(alone, "agent", "-m", "say hello", "--model", "offline/offline")
    assert (done.code, done.out.endswith("\nhello\n")) == (0, True)
    for wrong in ("ofline/x", "openai"):
        done = await hark(alone, "agent", "-m", "hi", "--model", wrong)
        assert (done.code, done.out, done.error.count("\n")) == (2, "", 1)
        assert done.error.startswith(f"hark agent: --model: `{wrong.partition('/')[0]}` ")


async def test_a_service_that_answers_with_another_model_says_so(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Yes.") as at:
        done = await hark(tmp_path, "agent", "-m", "hi", "--model", "offline/offline")
        complaint = "The service that runs answers with test/puppet; stop it, or leave --model out.\n"
        assert done == Done(2, "", complaint)
        assert at.stored.turns() == []


async def test_a_service_is_found_from_another_folder(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{port: 0}}\nowners: ['telegram:${{WHO}}']\n")
    async with Program(["run"], alone, {**ENVIRON, "WHO": "1"}) as terminal:
        await terminal.until(lambda shown: "answers." in shown and shown.endswith("\n>"))
        done = await hark(alone, "status")  # also without the variables of the shell that it was started in
        assert (done.code, done.out.startswith("Hark is running and ready.")) == (0, True)
        done = await hark(other, "status")
        assert (done.code, done.out.startswith("Hark is running and ready.")) == (0, True)
        terminal.type("/quit\r")
        assert await terminal.exit_code() == 0
    assert "WHO" in (await hark(other, "status")).error
    (alone / "config.yaml").write_text(NO_OLLAMA)
    done = await hark(other, "status")
    assert done.out.startswith(f"No service is running in {alone / 'state'}.")
    done = await hark(other, "agent", "-m", "say still mine")
    assert (done.code, done.error) == (0, "")
    assert list(other.iterdir()) == []
    (other / "config.yaml").write_text(NO_OLLAMA)  # a folder of its own comes first
    done = await hark(other, "status")
    assert done.out.startswith(f"No service is running in {other / 'state'}.")
    done = await hark(other, "agent", "-m", "say new")
    assert done.error == f"A new Hark begins in {other / 'state'}.\n"
    (other / "config.yaml").unlink()
    done = await hark(other, "status")  # a store of its own, too
    assert done.out.startswith(f"No service is running in {other / 'state'}.")


async def test_beside_its_service_a_command_needs_no_variables_of_it(
    alone: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also where another Hark was run since, and the file is named."""
    other = tmp_path_factory.mktemp("other")
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{port: 0}}\nowners: ['telegram:${{WHO}}']\nstate: here\n")
    (other / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{port: 0}}\n")
    async with Program(["run"], alone, {**ENVIRON, "WHO": "1"}) as terminal:
        await terminal.until(lambda shown: "answers." in shown and shown.endswith("\n>"))
        async with Program(["run"], other, ENVIRON) as another:
            await another.until(lambda shown: "answers." in shown and shown.endswith("\n>"))
            done = await hark(other, "status", "--config", str(alone / "config.yaml"))
            assert (done.code, done.error) == (0, "")
            done = await hark(alone, "agent", "-m", "say hello")
            assert (done.code, done.error) == (0, "")
            done = await hark(alone, "doctor")
            assert done.code == 0
            unset = "config.yaml:3: owners[0]: the environment variable WHO is not set"
            assert [line for line in done.out.splitlines() if line.startswith("note") and unset in line]
            assert "no mistakes" not in done.out
            (alone / "config.yaml").write_text(
                f"{NO_OLLAMA}gateway: {{prt: 0}}\nowners: ['telegram:${{WHO}}']\nstate: here\n"
            )
            done = await hark(alone, "doctor")
            assert (done.code, "wrong configuration  config.yaml:2: gateway.prt: unknown key" in done.out) == (1, True)


async def test_a_turn_as_json_is_the_object_of_the_gateway(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Hello.") as at:
        done = await hark(tmp_path, "agent", "-m", "hi", "--session", "work", "--json")
        assert done.code == 0
        shown = json.loads(done.out)
        assert (shown["session"], shown["status"], shown["text"]) == ("agent:main:http:direct:work", "ok", "Hello.")
        assert shown == await at.show(shown["run_id"])


async def test_a_turn_that_failed(tmp_path: Path, at: House) -> None:
    command = await begin(tmp_path, "agent", "-m", "hi")
    (await at.model.called()).fail(ModelError(ErrorKind.AUTH, "401"))
    done = await command.finish()
    assert done == Done(1, f"{wording.failure('auth')}\n", "test/puppet: 401\n")


async def test_a_turn_that_takes_too_long_goes_on(tmp_path: Path, at: House) -> None:
    done = await hark(tmp_path, "agent", "-m", "hi", "--timeout", "0", "--json")
    run_id = json.loads(done.out)["run_id"]
    assert (done.code, done.error) == (3, f"Not finished in time; run {run_id} goes on.\n")
    (await at.model.called()).answer("Late.")
    async with at.unix() as client:
        assert (await client.get(f"/v1/agent/{run_id}?wait=20")).json()["text"] == "Late."
    assert (await at.http.get(f"/v1/agent/{run_id}")).status_code == 404, "a program without a token sees none of it"


async def test_a_turn_works_in_the_workspace(tmp_path: Path) -> None:
    """Its session is open to owners alone; one that programs without a token can write in has a room."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "MEMORY.md").write_text("the owner likes tea")
    async with house(tmp_path) as at:
        for more, expected in ((), True), (("--session", "work"), False):
            command = await begin(tmp_path, "agent", "-m", "hi", *more)
            call = await at.model.called()
            assert ("the owner likes tea" in call.request.system) is expected
            assert "stay_silent" not in [tool.name for tool in call.request.tools], "somebody waits for the answer"
            call.answer("Done.")
            assert (await command.finish()).code == 0


async def test_an_interrupt_ends_the_turn(tmp_path: Path, at: House) -> None:
    command = await begin(tmp_path, "agent", "-m", "hi")
    await at.model.called()
    command.send_signal(signal.SIGINT)
    done = await command.finish()
    assert done == Done(130, "", "")
    await lanes_idle()
    assert len(at.stored.turns(outcome="aborted")) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-m", " "), "There is nothing to say"),
        ((), "There is nothing to say"),
        (("-m", "x", "--session", "agent:nobody"), "is not a session key"),
    ],
)
async def test_what_cannot_be_meant_is_usage(alone: Path, arguments: tuple[str, ...], complaint: str) -> None:
    await hark(alone, "agent", "-m", "so that there is a store")
    done = await hark(alone, "agent", *arguments)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.error
    assert done.error.count("\n") == 1


async def test_more_than_a_message_may_have_is_usage(tmp_path: Path) -> None:
    async with house(tmp_path):
        for size in (1_000_001, 999_999):  # the second is too much only for the gateway
            done = await hark(tmp_path, "agent", "-m", "read this", typed="x" * size)
            assert (done.code, done.out, done.error.count("\n")) == (2, "", 1)
            assert "bytes" in done.error


async def test_status_of_a_service(tmp_path: Path, at: House) -> None:
    await at.submit("hi")
    await at.model.called()
    done = await hark(tmp_path, "status")
    assert (done.code, done.error) == (0, "")
    first, model, channels, sandbox, runs, deliveries = done.out.splitlines()
    assert first == "Hark is running and ready."
    assert model.startswith("model       test/puppet (")
    assert channels.startswith("channels    console  ready since 20")
    held = choose("auto")
    assert sandbox == f"sandbox     {held.sandbox.name if held.sandbox else 'none'}: {held.why}. {cgroup.shown()}"
    assert runs == "runs        1 running, 0 waiting"
    assert deliveries == "deliveries  0 open, 0 refused, 0 uncertain"
    await at.store_fails()
    done = await hark(tmp_path, "status")
    assert done.code == 1
    assert "Hark is running, but not ready." in done.out
    assert "store    down since 20" in done.out


async def test_the_doctor_says_what_is_right_and_what_is_wrong(tmp_path: Path, at: House) -> None:
    done = await hark(tmp_path, "doctor")
    assert (done.code, done.error) == (0, "")
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        ["ok", "configuration"],
        ["ok", "web"],
        ["note", "platforms"],
        ["ok", "service"],
        ["ok", "console"],
        ["ok" if choose("auto").sandbox else "note", "sandbox"],
    ]
    await at.store_fails()
    done = await hark(tmp_path, "doctor", "--json")
    assert done.code == 1
    found = {(one["state"], one["about"]): one["text"] for one in json.loads(done.out)}
    assert found["wrong", "service"] == "running, and not ready: see below"
    assert ("wrong", "store") in found


async def test_the_doctor_without_a_service(alone: Path) -> None:
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}channels: {{telegram: {{enabled: false}}}}\n")
    done = await hark(alone, "doctor")
    assert (done.code, done.error) == (1, "")
    right, web, _, wrong, model, sandbox = done.out.splitlines()
    assert "web.fetch.follow" in web
    assert model.split() == ["ok", "model", "offline/offline", "answers"]
    assert right.startswith("ok    configuration")
    assert "`hark run` starts it" in wrong
    assert choose("auto").why in sandbox
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}tools: {{exec: {{sandbox: none}}}}\n")
    found = {one["about"]: one for one in json.loads((await hark(alone, "doctor", "--json")).out)}
    assert (found["sandbox"]["state"], found["sandbox"]["text"][:5]) == ("note", "none:")


async def test_status_without_a_service(alone: Path) -> None:
    done = await hark(alone, "status")
    assert done == Done(1, f"No service is running in {alone / 'state'}. `hark run` starts one.\n", "")
    assert not (alone / "state").exists()


async def test_status_without_a_service_says_what_is_in_the_store(alone: Path) -> None:
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}channels: {{console: {{enabled: true}}}}\n")
    await hark(alone, "agent", "-m", "say one")
    await hark(alone, "agent", "-m", "be slow, say two", "--timeout", "0")
    before = {file.name: file.read_bytes() for file in (alone / "state").iterdir() if "-" not in file.name}
    done = await hark(alone, "status")
    first, sessions, runs, deliveries = done.out.splitlines()
    assert (done.code, done.error) == (1, "")
    assert first.startswith("No service is running in ")
    assert sessions.startswith("sessions    ")
    assert ", last used 20" in sessions
    assert runs in ("runs        0 to go on, 1 waiting", "runs        1 to go on, 0 waiting")
    assert deliveries == "deliveries  0 open, 0 refused"
    assert {file.name: file.read_bytes() for file in (alone / "state").iterdir() if "-" not in file.name} == before
    (alone / "state" / "hark.db").write_bytes(b"not a database, whatever it says" * 100)
    done = await hark(alone, "status")
    assert (done.code, done.error) == (1, "")
    assert "cannot be read" in done.out.splitlines()[1]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def test_the_terminal_of_the_service_closes_without_it(alone: Path) -> None:
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{port: {free_port()}}}\n")
    async with Program(["run"], alone, ENVIRON) as terminal:
        await terminal.until("offline/offline answers.")
        await terminal.until(lambda shown: shown.endswith("\n>"))
        terminal.type("say hello\r")
        await terminal.until("\nhello")
        terminal.type("\x04")
        await terminal.until("The terminal is closed, Hark goes on; Ctrl-C stops it.")
        done = await hark(alone, "agent", "-m", "say still there")
        assert done.out.endswith("still there\n")
        terminal.type("\x03")
        assert await terminal.exit_code() == 0


async def test_ctrl_c_twice_in_the_terminal_of_the_service_stops_it(alone: Path) -> None:
    (alone / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{port: {free_port()}}}\n")
    async with Program(["run"], alone, ENVIRON) as terminal:
        await terminal.until(lambda shown: "answers." in shown and shown.endswith("\n>"))
        terminal.type("\x03")
        await terminal.until("Ctrl-C again to leave")
        terminal.type("\x03")
        assert await terminal.exit_code() == 0
    assert not (alone / "state" / "hark.sock").exists()


async def test_a_service_that_cannot_start_says_why_in_one_line(alone: Path) -> None:
    (alone / "state").write_text("in the way")
    done = await hark(alone, "chat", typed="hello")
    assert (done.code, done.out) == (1, "")
    assert done.error.splitlines()[-1].startswith("Hark cannot start: ")
    assert done.error.count("\n") == 1
