"""The corpora, and lines composed of their words, run in each sandbox: nothing outside changes, is shown or reached."""

import base64
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent.sandbox.proof import Setting, choose
from agent.shell import Level
from agent.tools.permission import Permission
from tests.agent.sandbox.conftest import NAMES, held
from tests.shell.confined import SECRET, Outside, outside, ran, shows
from tests.shell.corpus import SYSTEM_PATH, benign, bypass, work

LEVELS: tuple[Level, ...] = ("look", "work")
EVERY = {"bubblewrap": 96, "sandlock": 300, "seatbelt": 96}  # of the corpora one in so many is run by default
SEED = int(os.environ.get("FUZZ_SEED", "19"))
# What surely tries to do harm, whatever stands in the corpora.
SURELY = (
    "cat ../config.yaml ../.env ../elsewhere/* ../home/.netrc ../home/*",
    "cat private/key config.yaml; ls private; base64 private/key; cp config.yaml copy; cat copy",
    "tar cf - .. 2>/dev/null | base64; find / -name '.netrc' -exec cat {} + 2>/dev/null",
    "echo evil > ../made; mkdir ../folder; rm -rf ../elsewhere ../home; touch ../config.yaml; chmod 777 ../.env",
    "echo evil > out/file; echo evil > link; rm link; ln -s ../elsewhere new; echo evil > new/made",
    "echo x > /dev/tcp/127.0.0.1/PORT; echo x > /dev/udp/127.0.0.1/PORT",
    "curl -s http://127.0.0.1:PORT/; wget -q -O - http://127.0.0.1:PORT/",
    "python3 -c \"import socket; socket.create_connection(('127.0.0.1', PORT))\"",
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('sock')\"",
    "kill -9 PID; kill -HUP PID; kill -9 $PPID",
    "git config core.fsmonitor ./x; echo evil > .git/hooks/pre-commit; echo evil > AGENTS.md; rm -rf .git media",
    "rm -rf -- * .[!.]*; echo done",
)


@pytest.fixture
def around(tmp_path: Path) -> Iterator[Outside]:
    with outside(tmp_path / "house") as made:
        yield made


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> Setting:
    return held(request.param)


def levels(name: Setting) -> list[Level]:
    """The levels of these tests at which a sandbox holds commands."""
    sandbox = choose(name).sandbox
    return [level for level in LEVELS if sandbox and level in sandbox.levels]


def corpora() -> list[str]:
    """All lines that a command can be."""
    return [line.command for line in (*bypass(), *benign()) if "\0" not in line.command]


def surely(around: Outside) -> list[str]:
    return [line.replace("PORT", str(around.port)).replace(" PID", " " + str(around.bystander.pid)) for line in SURELY]


async def harmless(name: Setting, level: Level, around: Outside, lines: Sequence[str]) -> None:
    """Run lines: nothing outside has changed or been reached afterwards, and nobody has seen a secret."""
    await ran(name, level, around, ["true"])  # makes what is missing of what is kept
    before = around.state(level)
    said = await ran(name, level, around, lines)
    assert around.reached() == []
    assert [line for line, wrote in said.items() if shows(wrote)] == []
    after = around.state(level)
    assert {path for path in {*before, *after} if before.get(path) != after.get(path)} == set()


@pytest.mark.soak
@pytest.mark.parametrize("level", LEVELS)
async def test_a_sample_of_the_corpora_does_no_harm(name: Setting, level: Level, around: Outside) -> None:
    await harmless(held(name, level), level, around, [*surely(around), *corpora()[:: EVERY[name]]])


@pytest.mark.soak
@pytest.mark.parametrize("level", LEVELS)
async def test_no_line_of_the_corpora_does_harm(name: Setting, level: Level, around: Outside) -> None:
    await harmless(held(name, level), level, around, [*surely(around), *corpora()])


async def test_lines_really_run_there(name: Setting, around: Outside) -> None:
    """Or the tests above could not fail: each says what it reads, and writes where it may, in a room made anew."""
    lines = ["cat notes.md", "echo x > made; echo y > a.txt; ls made", "ls made; cat a.txt", "sleep 60; echo late"]
    lines += ["kill -9 $PPID; sleep 60", "echo after"]
    for level in levels(name):
        said = await ran(name, level, around, lines)
        assert said[lines[0]] == b"- dentist\n"
        assert (b"made\n" in said[lines[1]]) == (level == "work")
        assert said[lines[2]].endswith(b"a b\nc d\na b\n")
        assert b"ls: cannot access 'made'" in said[lines[2]]
        assert said[lines[3]] == b""
        assert said[lines[5]] == b"after\n"
        assert not (around.place.workspace / "made").exists()


def test_a_secret_is_seen_in_what_a_line_writes() -> None:
    for shift in range(4):
        text = b"." * shift + SECRET.encode() + b"\nand more"
        assert shows(text)
        assert shows(base64.encodebytes(text))
    assert not shows(b"nothing")


def composed(count: int, seed: int) -> list[str]:
    """Lines made of the words of the corpora, with what joins lines between them."""
    chance, words = random.Random(seed), corpora()
    pieces = [piece for line in words for piece in line.split(" ") if piece]
    joints = (" ; ", " && ", " | ", " || ", "\n", " & ", " > ", " >> ", " < ", " $(", ") ", " `", " ")
    made = []
    for _ in range(count):
        some = [chance.choice(words) if chance.random() < 0.4 else chance.choice(pieces) for _ in range(4)]
        made.append("".join(one + chance.choice(joints) for one in some)[:2000])
    return made


def unasked(around: Outside, lines: Sequence[str], *, confined: bool) -> dict[Level, list[str]]:
    """Those that run without a question, by the level at which they do."""
    permission = Permission(
        security="allowlist",
        asking="on-miss",
        fallback="deny",
        in_sandbox="allow",
        network="ask",
        held=LEVELS if confined else (),
        judge=around.place.judge(path=SYSTEM_PATH),
    )
    found: dict[Level, list[str]] = {"look": [], "work": [], "network": [], "host": []}
    for line in lines:
        verdict = permission.of(line, around.place.workspace, {"HOME": str(around.place.home)}, None)
        if not verdict.missed:
            found[verdict.level].append(line)
    return found


async def fuzzed(name: Setting, around: Outside, count: int) -> None:
    print(f"FUZZ_SEED={SEED}")  # noqa: T201
    lines = composed(count, SEED)
    runs = unasked(around, lines, confined=True)
    assert runs["host"] == runs["network"] == []
    assert len(runs["work"]) == len(lines), "in a sandbox nothing is asked about that can do no harm"
    for level in levels(name):
        await harmless(name, level, around, lines)


async def test_composed_lines_do_no_harm(name: Setting, around: Outside) -> None:
    await fuzzed(name, around, 600 // EVERY[name])


@pytest.mark.soak
async def test_many_composed_lines_do_no_harm(name: Setting, around: Outside) -> None:
    await fuzzed(name, around, 3_000)


def test_what_runs_unasked_without_a_sandbox_changes_nothing(around: Outside) -> None:
    """On the host: a few lines to the letter, and what the shell does by itself."""
    lines = [*corpora(), *composed(3_000, SEED), "pwd", "ls -la", "id"]
    runs = unasked(around, lines, confined=False)
    assert runs["look"] == runs["work"] == runs["network"] == []
    assert 3 < len(runs["host"]) < 100
    before = around.state("look")
    for line in runs["host"]:
        done = subprocess.run(
            ["/bin/bash", "-c", line],
            cwd=around.place.workspace,
            env=around.place.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
        assert not shows(done.stdout + done.stderr), line
    assert around.reached() == []
    assert around.state("look") == before


def test_what_only_looks_is_not_asked_about_and_work_as_far_as_it_is_allowed(around: Outside) -> None:
    looking, working = [line.command for line in benign() if not line.asks], work()
    assert (len(looking), len(working)) == (464, 200)
    assert len({command for command, _ in working}) == 200
    assert unasked(around, looking, confined=True)["work"] == looking
    permission = Permission(
        security="allowlist",
        asking="on-miss",
        fallback="deny",
        in_sandbox="allow",
        network="ask",
        held=LEVELS,
        judge=around.place.judge(),
    )
    for command, needs in working:
        verdict = permission.of(command, around.place.workspace, {}, needs)
        assert bool(verdict.missed) == (needs in ("network", "host")), command
