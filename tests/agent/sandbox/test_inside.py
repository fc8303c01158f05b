"""What a command in a sandbox can do: ordinary programs work, and what is refused is refused in the system's words."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.sandbox.base import TEMPORARY_BYTES
from agent.sandbox.proof import Setting
from agent.tools.exec import ExecParameters
from tests.agent.sandbox.conftest import Run, git
from tests.agent.tools.calls import outcome
from tests.agent.tools.commands import commands

LOOKING: Mapping[str, str] = {
    "python3 -c 'import ssl, sqlite3, json, ctypes; print(json.dumps([1]))'": "[1]",
    "git log --format=%s": "First",
    "git status --short": "?? two.txt",
    "git diff HEAD~0 --stat | cat": "",
    'f=$(mktemp) && echo x > "$f" && cat "$f"': "x",
    'd=$(mktemp -d) && cp -a one.txt "$d/copy.txt" && cat "$d/copy.txt"': "one",
    "echo lost > /dev/null && cat /dev/null": "",
    "head -c 5 /dev/urandom | wc -c": "5",
    "head -c 3 /dev/zero | tr '\\0' z": "z" * 3,
    "cat one.txt | tr a-z A-Z | sort": "ONE",
    "cat <<'X'\nhere\nX": "here",
    "cat < <(echo substituted)": "substituted",
    "tar cf - one.txt | tar tf -": "one.txt",
    "find . -name 'one*' -exec cat {} +": "one",
    "for i in 1 2; do echo $i; done | xargs": "1 2",
    "seq 3 | while read -r n; do printf %s $n; done": "123",
    '[ "$HOME" = "$TMPDIR" ] && echo own': "own",
    "pwd -P": "{room}",
    "(sleep 0.01 & wait; echo waited)": "waited",
    "bash -c 'kill -TERM $$'; echo $?": "143",
}


async def test_ordinary_programs_work_where_a_command_looks(run: Run, repository: Path, name: Setting) -> None:
    (repository / "two.txt").write_text("two\n")
    line = "\n".join(f"( {command}\n) 2>&1; echo '--'" for command in LOOKING)
    if name == "sandlock":
        line = line.replace("cp -a", "cp")
    answer, *said = (await run(line, needs="look")).split("\n", 1)
    assert answer == "[exit code 0]"
    found = said[0].split("--\n")[:-1]
    wanted = [text.format(room=repository) for text in LOOKING.values()]
    assert [text.strip().splitlines()[-1] if text.strip() else "" for text in found] == [
        text.strip() for text in wanted
    ]


async def test_files_of_the_room_are_written_at_work(run: Run, room: Path) -> None:
    (room / "a.txt").write_text("a\n")
    said = await run(
        "echo b > b.txt && cp a.txt c.txt && mv b.txt d.txt && mkdir -p e/f && rm a.txt && ln -s c.txt link && "
        'sed -i s/a/x/ c.txt && python3 -c \'open("p.txt", "w").write("p")\' && tee t.txt < d.txt && touch new',
        needs="work",
    )
    assert said.startswith("[exit code 0]\n")
    assert {"c.txt", "d.txt", "e", "link", "p.txt", "t.txt", "new"} <= set(os.listdir(room))
    assert "a.txt" not in os.listdir(room)
    assert (room / "c.txt").read_text() == "x\n"


async def test_git_and_copies_with_all_they_have_work(run: Run, repository: Path) -> None:
    room = repository
    (room / "one.txt").chmod(0o640)
    os.utime(room / "one.txt", (1_000_000_000, 1_000_000_000))
    said = await run(
        "set -e; cp -a one.txt same.txt; tar cf t.tar one.txt; mkdir out; tar xf t.tar -C out; chmod 700 out\n"
        "git add same.txt; git commit -qm Second; git init -q new; cd new; echo x > f; git add f\n"
        "git -c user.name=B -c user.email=b@example.org commit -qm Own; cd ..; git clone -q new other; cat other/f",
        needs="work",
    )
    assert said == "[exit code 0]\nx\n"
    for copy in ("same.txt", "out/one.txt"):
        status = (room / copy).stat()
        assert (status.st_mode & 0o777, status.st_mtime) == (0o640, 1_000_000_000)
    assert git(room, "log", "--format=%s") == "Second\nFirst\n"


async def test_codes_and_signals_are_told(run: Run, name: Setting) -> None:
    by = "exit code {}" if name == "bubblewrap" else "ended by signal {1}"
    for command, wanted in (
        ("exit 3", "exit code 3"),
        ("kill -TERM $$", by.format(143, "SIGTERM")),
        ("kill -KILL $$", by.format(137, "SIGKILL")),
        ("nothing-like-this", "exit code 127"),
    ):
        said = await run(command)
        assert said.startswith(f"[{wanted}]\n"), command
        assert ("command not found" in said) == (command == "nothing-like-this")


REFUSED: Mapping[str, tuple[str, ...]] = {
    "touch made": ("Read-only file system", "Permission denied"),
    "echo x >> one.txt": ("Read-only file system", "Permission denied"),
    "rm one.txt": ("Read-only file system", "Permission denied"),
    "echo x > /usr/made": ("Read-only file system", "Permission denied"),
    "mkdir /made": ("Read-only file system", "Permission denied"),
    "touch /dev/made": ("Read-only file system", "Permission denied"),
    "cat /etc/shadow": ("No such file", "Permission denied"),
    "ls /home": ("No such file", "Permission denied"),
    "cat {outside}": ("No such file", "Permission denied"),
    "echo x > /dev/tcp/127.0.0.1/1": ("Permission denied",),
    "python3 -c 'import socket; socket.socket()'": ("Permission denied",),
    "unshare -U true": ("Operation not permitted",),
    "mount -t tmpfs none /tmp": ("permission denied", "Operation not permitted", "must be superuser"),
    "date -s 2020-01-01": ("Operation not permitted",),
    "kill -TERM {pid}": ("No such process", "Operation not permitted"),
    "chmod 777 /usr": ("Read-only file system", "Operation not permitted"),
}


async def test_refusals_come_in_the_words_of_the_system_and_it_is_said_what_it_had(run: Run, repository: Path) -> None:
    (repository.parent / "outside").write_text("haddock")
    about = {"outside": repository.parent / "outside", "pid": os.getppid()}
    line = "\n".join(f"( {command.format(**about)}\n) 2>&1; echo '--'" for command in REFUSED)
    said = await run(f"{line}\nfalse", needs="look")
    assert said.startswith("[exit code 1]\n")
    assert "haddock" not in said
    for (command, words), found in zip(REFUSED.items(), said.split("\n", 1)[1].split("--\n"), strict=False):
        assert any(word in found for word in words), (command, found)
    assert said.endswith(
        "[It ran with needs: look: it could read, change nothing but its temporary folder, and had no network. If it "
        "failed for lack of that, call it again with needs: work, network or host; a person may be asked.]"
    )
    failed = await run("false", needs="work")
    assert "[It ran with needs: work: it could write in the workspace" in failed
    assert "call it again with needs: network or host; a person may be asked.]" in failed
    assert "[It ran" not in await run("true")


RIGHTS = """
import ctypes
found = (ctypes.c_uint32 * 6)()
assert ctypes.CDLL(None).capget((ctypes.c_uint32 * 2)(0x20080522, 0), found) == 0
print(list(found))
"""


@pytest.mark.parametrize("level", ["look", "work"])
async def test_root_has_no_more_rights_there_than_others(run: Run, room: Path, level: str) -> None:
    (room / "rights.py").write_text(RIGHTS)
    assert await run("python3 rights.py", needs=level) == "[exit code 0]\n[0, 0, 0, 0, 0, 0]\n"


async def test_folders_in_memory_are_bounded(run: Run, name: Setting) -> None:
    said = await run("df -B1 --output=size,target /tmp /dev/shm")
    if name == "bubblewrap":
        assert said.count(f"{TEMPORARY_BYTES} /") == 2
    else:
        assert "Permission denied" in await run("echo x > /tmp/made; echo x > /dev/shm/made")


async def test_only_names_of_etc_that_hold_no_secret_are_there(run: Run) -> None:
    said = await run(
        "ls -A /etc 2>/dev/null; cat /etc/os-release | head -1; getent passwd root; ls -d /etc/ssl/private"
    )
    for secret in ("shadow", "gshadow", "sudoers", "ssh", "krb5.keytab"):
        assert f"\n{secret}\n" not in said
    assert "root:" in said


async def test_nothing_of_one_command_is_left_for_the_next(run: Run, room: Path) -> None:
    await run("echo haddock > $TMPDIR/left; echo haddock > $HOME/left; echo haddock > /tmp/left; true")
    assert "haddock" not in await run("cat $TMPDIR/left $HOME/left /tmp/left; ls $TMPDIR")
    temporary = room.with_name("room-temporary")
    assert os.listdir(temporary) == [], "each removes its own"


@pytest.mark.parametrize("level", ["look", "work"])
async def test_variables_reach_the_command_and_nothing_before_it(run: Run, room: Path, level: str) -> None:
    """Programs on its PATH, a start of its shell and settings of the loader leave marks where anything obeys them, as
    what starts the sandbox would outside of it."""
    outside = room.parent / "marks"
    outside.mkdir()
    given = _leading(room, outside)
    said = await run("echo started; echo $LD_DEBUG_OUTPUT", needs=level, env=given)
    assert f"started\n{outside}/loader\n" in said, "the command itself has them"
    assert os.listdir(outside) == []


async def test_such_variables_lead_what_runs_on_the_host(room: Path) -> None:
    """The marks of the test above are left where there is no sandbox."""
    outside = room.parent / "marks"
    outside.mkdir()
    parameters = ExecParameters(command="date; python3 -c 1", env=_leading(room, outside))
    await outcome(commands(room).exec, parameters)
    left = {name.split(".")[0] for name in os.listdir(outside)}
    assert {"bash", "loader", "date", "python3"} <= left


def _leading(room: Path, outside: Path) -> dict[str, str]:
    (room / "bin").mkdir()
    for name in ("bwrap", "sh", "bash", "python3", "env", "date"):
        (room / "bin" / name).write_text(f"#!/bin/sh\n: > {outside}/{name}\n")
        (room / "bin" / name).chmod(0o755)
    (room / "start.sh").write_text(f": > {outside}/bash\n")
    (room / "sitecustomize.py").write_text(f"open({str(outside / 'site')!r}, 'w')\n")
    (room / "no.so").write_text("")
    return {
        "LD_DEBUG": "files",
        "LD_DEBUG_OUTPUT": f"{outside}/loader",
        "LD_PRELOAD": f"{room}/no.so",
        "PATH": f"{room}/bin:{os.environ['PATH']}",
        "BASH_ENV": f"{room}/start.sh",
        "ENV": f"{room}/start.sh",
        "PYTHONPATH": str(room),
        "PYTHONHOME": "",
    }
