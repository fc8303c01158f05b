"""The corpora of commands, the place in which they are judged, and what it takes to run one and watch it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agent.shell import LEVELS, SAFE_ENVIRONMENT, Judge, Judgement, Level, Rule, parse_rule

HERE = Path(__file__).parent
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_SIGNS = str.maketrans({"⏎": "\n", "␍": "\r", "␀": "\0", "␉": "\t", "␋": "\v", "␌": "\f"})
_CODE_POINT = re.compile("«([0-9A-F]{4,6})»")

_PROGRAM = re.compile(r"(?:^|[|;&(\n] ?)([A-Za-z][\w+-]*)")


_FILES = {
    "README.md": "# Sample\nSee https://example.org for more.\n",
    "package.json": '{"version": "1.0.0", "scripts": {"test": "true"}, "dependencies": {"left": "^1"}}\n',
    "pyproject.toml": '[project]\nname = "sample"\n[tool.pytest]\n',
    "src/app.py": "import sys\n\nclass Server:\n    def main(self):\n        return 1  # TODO\n" * 40,
    "src/util.py": "def foo():\n    return 'bar'\n",
    "tests/test_app.py": "def test():\n    assert True\n",
    "data.json": '{"items": [1, 2], "users": [{"name": "ann"}]}\n',
    "x.json": '{"a": [{"b": 1}, {"b": 2}]}\n',
    "log.jsonl": '{"level": "error", "time": 1, "message": "no"}\n',
    "data.csv": "a,3\nb,1\nc,2\n",
    "expenses.csv": "2026-01-01,food,3.5\n2026-01-02,rent,700\n",
    "data.txt": "one 1\ntwo 2\none 3\n",
    "numbers.txt": "1\n2\n3\n",
    "names.txt": "ab_cd\nef_gh\n",
    "a.txt": "a b\nc d\na b\n",
    "b.txt": "a b\nc e\n",
    "build.log": "ok\nERROR: no\nwarn: x\nconnection refused\n" * 5,
    "config.ini": "# comment\na=1\n\nb=2\n",
    "notes.md": "- dentist\n",
    "notes.txt": "nothing\n",
    "shopping.md": "- milk\n",
    "Makefile": "all:\n\ttrue\n",
    "token.txt": "aGVsbG8=\n",
    "data.bin": "\x01\x02text of it\x03",
    ".github/workflows/ci.yml": "jobs:\n  test: {}\n",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One command of a corpus. rules: the allowlist it is judged with. asks: a benign one that does more than look.
    repository: git is to know the workspace."""

    number: int
    section: str
    command: str
    what: str = ""
    rules: tuple[str, ...] = ()
    asks: bool = False
    repository: bool = False


def bypass() -> list[Line]:
    """Commands that must not run on the host without a question."""
    found, rules = [], tuple[str, ...]()
    for number, section, text in _lines(HERE / "bypass.txt"):
        if not text:
            rules = ()
        elif text.startswith("rules: "):
            rules = tuple(text.removeprefix("rules: ").split(" | "))
        else:
            what, _, command = text.partition(" :: ")
            found.append(Line(number, section, _spelled_out(command), what, rules))
    return found


def benign() -> list[Line]:
    """Commands as agents run them."""
    return [
        Line(number, section, _spelled_out(text.removeprefix("? ")), asks=text.startswith("? "), repository=True)
        for number, section, text in _lines(HERE / "benign.txt")
        if text
    ]


def work() -> list[tuple[str, Level]]:
    """Ordinary pieces of work, each with the level that it needs."""
    found = []
    for text in (HERE / "work.txt").read_text(encoding="utf-8").splitlines()[2:]:
        command, _, needs = text.rpartition(" :: ")
        found.append((_spelled_out(command), LEVELS[LEVELS.index(needs)]))  # type: ignore[arg-type]
    return found


def _lines(file: Path) -> Iterator[tuple[int, str, str]]:
    """Number, section and text of each line; a section begins with an empty text. What stands before is a comment."""
    section = ""
    for number, text in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if heading := re.fullmatch(r"\[([a-z: ]+)\]", text):
            section = heading[1]
            yield number, section, ""
        elif section and text:
            yield number, section, text


def _spelled_out(command: str) -> str:
    return _CODE_POINT.sub(lambda point: chr(int(point[1], 16)), command.translate(_SIGNS))


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace with what the corpora speak of, a home beside it, and a PATH on which every program is found."""

    workspace: Path
    home: Path
    path: str

    def judge(self, rules: Sequence[str | Rule] = (), path: str = "") -> Judge:
        """A judge of commands in the workspace. path: another PATH."""
        allowed = [parse_rule(rule) if isinstance(rule, str) else rule for rule in rules]
        return Judge(workspace=self.workspace, path=path or self.path, allowlist=allowed)

    def judged(self, judge: Judge, command: str, granted: Sequence[Rule] = (), folder: Path | None = None) -> Judgement:
        """What `judge` says of a command that `exec` would run in the workspace, or in another folder."""
        return judge.judge(command, folder or self.workspace, granted, self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """What `exec` gives to a command, with a home of its own."""
        own = {"PATH": SYSTEM_PATH, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": "/tmp"}
        return {**own, **SAFE_ENVIRONMENT}


def places(folder: Path, lines: Iterable[Line]) -> Iterator[tuple[Line, Place]]:
    """Each line with all that it speaks of: a place in which nothing has run yet, gone with the next line."""
    tools = folder / "tools"
    for line in lines:
        place = make_place(folder / "place", tools)
        if line.repository:
            make_repository(place)
        yield line, place
        shutil.rmtree(folder / "place")


@cache
def _not_here() -> tuple[str, ...]:
    """Programs that the corpora name and this machine lacks."""
    names = {name for line in [*bypass(), *benign()] for name in _PROGRAM.findall(line.command)}
    return tuple(name for name in sorted(names) if shutil.which(name, path=SYSTEM_PATH) is None)


def make_place(folder: Path, tools: Path | None = None) -> Place:
    """Build it in an empty folder. tools: where stand-ins for programs are put, if elsewhere."""
    workspace, home, tools = folder / "ws", folder / "home", tools or folder / "tools"
    for made in (
        "src/api",
        "tests",
        "docs",
        "sub/a/b",
        "usr/bin",
        "bin",
        "memory",
        "notes",
        ".github/workflows",
        ".git/hooks",
    ):
        (workspace / made).mkdir(parents=True)
    for made in (home / "Documents", home / "Downloads", folder / "elsewhere", folder / "workspace-evil"):
        made.mkdir(parents=True)
    if not tools.is_dir():  # without a stand-in a line would ask because a program is not there
        tools.mkdir(parents=True)
        for name in _not_here():
            _executable(tools / name)
    for name in (
        "ls",
        "x",
        "run.sh",
        "run_tests.sh",
        "gradlew",
        "git",
        "npm",
        "usr/bin/ls",
        "bin/cat",
        "bin/npm",
        "sub/ls",
    ):
        _executable(workspace / name)
    for name, text in _FILES.items():
        (workspace / name).write_text(text)
    (workspace / ".git/config").write_text("[core]\n")
    for repository in (workspace / "evil", workspace / "evil.git"):
        for made in ("objects", "refs"):
            (repository / made).mkdir(parents=True)
        (repository / "HEAD").write_text("ref: refs/heads/main\n")
        (repository / "config").write_text("[core]\nfsmonitor = ./x\n")
    (workspace / "out").symlink_to(folder / "elsewhere")
    (workspace / "link").symlink_to(folder / "elsewhere/file")
    (workspace / "deep").symlink_to("sub/a/b")
    (workspace / "processes").symlink_to("/proc")
    return Place(workspace, home, f"{SYSTEM_PATH}:{tools}")


def make_repository(place: Place) -> None:
    """Let git know the workspace: one commit."""
    shutil.rmtree(place.workspace / ".git")
    for words in (["init", "-q", "-b", "main"], ["add", "src"], ["commit", "-q", "-m", "First"]):
        command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *words]
        subprocess.run(command, cwd=place.workspace, env=place.environment, check=True)


def _executable(file: Path) -> None:
    file.write_text("#!/bin/sh\n")
    os.chmod(file, 0o755)
