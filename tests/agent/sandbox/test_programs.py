"""Programs that people use work at each level: the system calls that a command may make are a list."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.sandbox.proof import Setting, choose
from tests.agent.sandbox.conftest import Run

# A line, and what the last line of its output contains. `$T` is a new folder to write in.
PROGRAMS: Mapping[str, tuple[str, str]] = {
    "git": ("git log -1 --format=%s && git status --short && git grep -c one && git blame -s one.txt", "one"),
    "python3": (
        "python3 -c 'import asyncio, threading, subprocess as s, ssl, sqlite3, tempfile as t\n"
        "loop = asyncio.new_event_loop(); threading.Thread(target=loop.run_forever, daemon=True).start()\n"
        "asyncio.run_coroutine_threadsafe(asyncio.sleep(0, 42), loop).result(5)  # wakes it through a pair of sockets\n"
        'with t.NamedTemporaryFile() as f: f.write(b"x"); print(s.check_output(["echo", "sub"]).decode())\'',
        "",
    ),
    "mktemp": ('f=$(mktemp) && d=$(mktemp -d) && echo x > "$f" && mv "$f" "$d/y" && cat "$d/y"', "x"),
    "node": (
        'node -e \'const c = require("child_process"), w = require("worker_threads");'
        'new w.Worker("1", {eval: true}).on("exit", () => console.log(c.execSync("echo node") + ""))\'',
        "node",
    ),
    "go": ("printf 'package main\\nfunc main() { println(6 * 7) }\\n' > $T/m.go && GOCACHE=$T/c go run $T/m.go", "42"),
    "rustc": ("printf 'fn main() {}' > $T/m.rs && rustc --emit=metadata -o $T/m $T/m.rs && echo fine", "fine"),
    "java": ("java -Xint -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -version", ""),
    "gcc": ("echo 'int main(void) { return 0; }' > $T/m.c && gcc -c -o $T/m.o $T/m.c && nm $T/m.o", "T main"),
    "make": ("printf 'all: a b\\na b:\\n\\t@echo $@\\n' > $T/Makefile && make -s -j2 -C $T | sort | tail -1", "b"),
    "ffmpeg": ("ffmpeg -v error -f lavfi -i testsrc=d=0.1 $T/o.gif && echo fine", "fine"),
    "sqlite3": (
        "sqlite3 $T/x.db 'PRAGMA journal_mode=wal; CREATE TABLE t(a); INSERT INTO t VALUES (42); SELECT a FROM t'",
        "42",
    ),
    "rg": ("rg -c one one.txt", "1"),
    "curl": ("curl -s file://$PWD/one.txt", "one"),
    "tar": ("tar czf $T/x.tgz one.txt && tar tzf $T/x.tgz", "one.txt"),
    "zip": ("zip -q $T/x.zip one.txt && echo fine", "fine"),
    "unzip": ("python3 -m zipfile -c $T/x.zip one.txt && unzip -p $T/x.zip", "one"),
    "xz": ("xz -T2 -c one.txt | xz -dc", "one"),
    "jq": ("echo '{\"a\": [1, 2]}' | jq '.a | add'", "3"),
    "perl": ('perl -e \'open(my $p, "-|", "echo perl"); print <$p>\'', "perl"),
    "ruby": ("ruby -e 'Thread.new { puts `echo ruby` }.join'", "ruby"),
    "php": ("php -r 'echo 6 * 7;'", "42"),
    "pandoc": ("echo '*x*' | pandoc -t html", "<em>x</em>"),
    "identify": ("identify -list format | grep -c PNG", ""),
    "ssh-keygen": ("ssh-keygen -q -t ed25519 -N '' -f $T/k && ssh-keygen -lf $T/k.pub", "ED25519"),
    "openssl": ("openssl genpkey -algorithm ed25519 | openssl pkey -pubout | head -1", "BEGIN PUBLIC KEY"),
    "pdftotext": ("pdftotext -v", ""),
    "awk": ("awk '{ print toupper($1) }' one.txt", "ONE"),
    "sort": ("seq 3 | sort -R --parallel=2 | wc -l", "3"),
    "rsync": ("rsync --list-only one.txt", "one.txt"),
    "gdb": ("gdb -batch -ex 'print 6*7'", "42"),
}
# Those that take long; the others run at every level by default.
SLOW = ("java", "go", "rustc", "node", "ffmpeg", "gdb", "pandoc")
FAILED = re.compile(r"Function not implemented|Bad system call|core dumped|Segmentation|Cannot allocate|ENOSYS")


async def use(run: Run, level: str, names: list[str]) -> dict[str, str]:
    """What each of the programs says, its exit code last; empty where it is not installed."""
    lines = [
        f"T=$(mktemp -d); ( command -v {name} > /dev/null && {{ {PROGRAMS[name][0]}\n}} 2>&1 && echo && echo works ); "
        f"command -v {name} > /dev/null && echo; echo '==== {name}'"
        for name in names
    ]
    said = await run("\n".join(lines), needs=level, timeout_seconds=120)
    parts = re.split(r"(?m)^==== (.*)\n", said.split("\n", 1)[1])
    return dict(zip(parts[1::2], (text.strip() for text in parts[::2]), strict=False))


async def works(run: Run, level: str, names: list[str]) -> None:
    found = await use(run, level, names)
    assert set(found) == set(names)
    assert "git" not in names or found["git"], "some are installed"
    for name, text in found.items():
        if text:
            *before, last = text.splitlines()
            assert last == "works", f"{name}: {text}"
            assert PROGRAMS[name][1] in "\n".join(before), f"{name}: {text}"
            assert not FAILED.search(text), f"{name}: {text}"


@pytest.mark.parametrize("level", ["look", "work", "network"])
async def test_programs_that_people_use_work(run: Run, repository: Path, level: str) -> None:
    await works(run, level, [name for name in PROGRAMS if name not in SLOW])


async def test_so_do_those_that_take_long(run: Run, repository: Path) -> None:
    await works(run, "look", list(SLOW))


@pytest.mark.soak
@pytest.mark.parametrize("level", ["work", "network"])
async def test_and_these_at_every_level(run: Run, repository: Path, level: str) -> None:
    await works(run, level, list(SLOW))


async def test_programs_that_are_not_installed(run: Run, repository: Path) -> None:
    lines = "\n".join(f"command -v {name} > /dev/null || echo {name}" for name in PROGRAMS)
    missing = (await run(lines, needs="look")).splitlines()[1:]
    missing = [name for name in missing if name in PROGRAMS]
    assert len(missing) < len(PROGRAMS) / 2
    if missing:
        pytest.skip(f"not installed, so not tried: {', '.join(missing)}")


async def test_processes_share_what_is_theirs_in_a_sandbox_with_memory_of_its_own(run: Run, name: Setting) -> None:
    """Semaphores and locks of POSIX, which lie in /dev/shm."""
    sandbox = choose(name).sandbox
    assert sandbox is not None
    said = await run("python3 -c 'import multiprocessing as m; m.Semaphore(); print(m.Pool(2).map(abs, [-1]))'")
    assert ("[1]" in said) == (name == "bubblewrap")
