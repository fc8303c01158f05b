"""A sandbox that leaks in one way is not taken, and it is said what got through; what is proved holds from then on."""

import ctypes
import marshal
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent.sandbox import filters, proof
from agent.sandbox.backends import Bubblewrap
from agent.sandbox.base import Launch, Sandbox, View
from agent.sandbox.kept import Kept
from agent.sandbox.proof import Setting, choose, prove
from agent.shell import Level
from tests.agent.sandbox.conftest import SPARSE, held

OUTER, INNER = 1, 2  # of the two sandboxes of bubblewrap, their words among what a launch passes
_EVERYTHING_ALLOWED = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)


@dataclass(frozen=True, slots=True)
class Broken:
    """A sandbox, but for one thing. seen: what it takes for the view; breaks: what it makes of a launch."""

    whole: Sandbox
    breaks: Callable[[Launch, View], Launch] = lambda launch, view: launch
    seen: Callable[[View], View] = lambda view: view
    name: str = "broken"
    levels: tuple[Level, ...] = ("look", "work", "network")

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        return self.breaks(self.whole.launch(self.seen(view), argv), view)


def words(change: Callable[[list[str], View], list[str]], at: int = OUTER) -> Callable[[Launch, View], Launch]:
    """Other words for bubblewrap, the outer or the inner one."""

    def change_of(launch: Launch, view: View) -> Launch:
        found = change(launch.passed[at].decode().split("\0")[:-1], view)
        return given(at, "".join(f"{word}\0" for word in found).encode())(launch, view)

    return change_of


def given(at: int, content: bytes) -> Callable[[Launch, View], Launch]:
    """Other bytes behind one of the descriptors."""
    return lambda launch, view: replace(
        launch, passed=tuple(content if number == at else old for number, old in enumerate(launch.passed))
    )


def put(*more: str, before: str = "--proc") -> Callable[[Launch, View], Launch]:
    """Further words in front of one."""

    def change(argv: list[str], view: View) -> list[str]:
        at = argv.index(before)
        return [*argv[:at], *(word.format(room=view.room, house=view.room.parent) for word in more), *argv[at:]]

    return words(change)


def out(*gone: str, at: int = OUTER) -> Callable[[Launch, View], Launch]:
    """Without some words, which stand side by side."""

    def change(argv: list[str], view: View) -> list[str]:
        found = [word.format(room=view.room) for word in gone]
        at = next(at for at in range(len(argv)) if argv[at : at + len(found)] == found)
        return [*argv[:at], *argv[at + len(found) :]]

    return words(change, at)


def instead(word: str, *others: str) -> Callable[[Launch, View], Launch]:
    """Other words for one."""
    return words(lambda argv, view: [new for old in argv for new in (others if old == word else (old,))])


def one_alone(launch: Launch, view: View) -> Launch:
    """A single bubblewrap, which has the filter."""
    program, *_ = launch.argv
    argv = launch.argv[launch.argv.index(program, 1) + 4 :]
    launch = replace(launch, argv=(program, "--args", "4", "--", *argv))
    return put("--seccomp", "3", before="--chdir")(launch, view)


def without(network: bool, *calls: str) -> bytes:
    """The filter for commands in namespaces without the rules about some calls."""
    rules = filters._WITH_NETWORK if network else filters._WITHOUT_NETWORK
    return filters._program(tuple(rule for rule in rules if rule.call not in calls), platform.machine())


def all_of(*changes: Callable[[Launch, View], Launch]) -> Callable[[Launch, View], Launch]:
    def change(launch: Launch, view: View) -> Launch:
        for one in changes:
            launch = one(launch, view)
        return launch

    return change


def passed(code: bytes) -> Callable[[Launch, View], Launch]:
    """Another filter."""
    return given(0, code)


_NO_FILTER = all_of(out("--seccomp", "3", at=INNER), passed(b""))
_HOUSE_TO_WRITE = put("--bind", "{house}", "{house}", before="--remount-ro")
_NO_NAMESPACE_OF_PROCESSES = instead(
    "--unshare-all", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"
)
_ROOM_TO_WRITE = words(lambda argv, view: [*argv[: (at := argv.index(str(view.room)) - 1)], "--bind", *argv[at + 1 :]])


def keeping(*names: str) -> Callable[[View], View]:
    """A view that keeps only a part of what leads git."""
    return lambda view: replace(
        view, kept=replace(view.kept, leading=tuple(path for path in view.kept.leading if path.name in names))
    )


BUBBLEWRAP: dict[str, tuple[Level, dict[str, Any], str]] = {
    "the network": ("look", {"breaks": all_of(put("--share-net"), passed(filters.sockets(True)))}, "reached TCP"),
    "datagrams": ("work", {"breaks": all_of(put("--share-net"), passed(filters.sockets(True)))}, "reached UDP"),
    "the filter": ("look", {"breaks": _NO_FILTER}, "reached a Unix socket"),
    "the filter at work": ("work", {"breaks": _NO_FILTER}, "reached a Unix socket"),
    "sockets outside": (
        "look",
        {"breaks": all_of(_NO_FILTER, put("--ro-bind", "{house}/outside", "{house}/outside", before="--remount-ro"))},
        "reached a Unix socket outside",
    ),
    "files outside": (
        "look",
        {"breaks": put("--ro-bind", "{house}", "{house}", before="--remount-ro")},
        "read a secret outside",
    ),
    "files outside to write": (
        "look",
        {"breaks": _HOUSE_TO_WRITE},
        "wrote outside",
    ),
    "links": (
        "work",
        {"breaks": _HOUSE_TO_WRITE},
        "wrote outside through a link",
    ),
    "rights": (
        "work",
        {"breaks": _HOUSE_TO_WRITE},
        "changed rights outside",
    ),
    "times": ("work", {"breaks": _HOUSE_TO_WRITE}, "changed times outside"),
    "the room": ("look", {"breaks": _ROOM_TO_WRITE}, "wrote into its room"),
    "rights in the room": ("look", {"breaks": _ROOM_TO_WRITE}, "changed rights in its room"),
    "links to what is not there": ("look", {"breaks": _HOUSE_TO_WRITE}, "made a file outside through a link"),
    "paths that are swapped": ("look", {"breaks": _HOUSE_TO_WRITE}, "wrote outside by a path that was swapped"),
    "the machine behind /proc": (
        "look",
        {"breaks": out("--remount-ro", "/proc", at=INNER)},
        "opened a file of /proc for writing",
    ),
    "the first process": ("look", {"breaks": one_alone}, "reached the first process"),
    "leases": ("look", {"breaks": passed(without(False, "fcntl"))}, "held up others by a lease"),
    "pairs of sockets": (
        "work",
        {"breaks": passed(without(False, "socketpair"))},
        "reached a Unix socket by a datagram",
    ),
    "pairs of sockets, with network": (
        "network",
        {"breaks": passed(without(True, "socketpair"))},
        "reached a Unix socket by a datagram",
    ),
    "the user of the service": (
        "work",
        {"breaks": passed(without(False, "openat"))},
        "made a file that runs as its user",
    ),
    "hooks": ("work", {"seen": keeping("config")}, "made a link in .git/hooks"),
    "settings of git": ("network", {"seen": keeping("hooks")}, "wrote into what its room keeps (.git/config)"),
    "processes": (
        "look",
        {"breaks": all_of(_NO_NAMESPACE_OF_PROCESSES, instead("--proc", "--bind", "/proc"))},
        "saw another program",
    ),
    "signals": ("look", {"breaks": _NO_NAMESPACE_OF_PROCESSES}, "ended another program"),
    "what is hidden": ("look", {"seen": lambda view: replace(view, hidden=())}, "read what is hidden"),
    "what is kept": (
        "work",
        {"seen": lambda view: replace(view, kept=Kept())},
        "wrote into what its room keeps (AGENTS.md)",
    ),
    "names of what is kept": (
        "work",
        {"seen": lambda view: replace(view, kept=Kept())},
        "renamed what its room keeps (AGENTS.md)",
    ),
    "rights of what is kept": (
        "work",
        {"seen": lambda view: replace(view, kept=Kept(), level="work")},
        "changed rights of what its room keeps (AGENTS.md)",
    ),
    "no temporary folder": (
        "look",
        {"breaks": put("--remount-ro", "/tmp", before="--chdir")},
        "had no temporary folder",
    ),
    "no devices": (
        "look",
        {"breaks": put("--ro-bind", "/etc/hosts", "/dev/null", before="--chdir")},
        "had no /dev/null",
    ),
    "nothing to write in at work": ("work", {"seen": lambda view: replace(view, level="look")}, "could not write"),
    "nothing to read": (
        "look",
        {"breaks": put("--tmpfs", "{room}", before="--chdir")},
        "could not read its room",
    ),
}


def plan(change: Callable[[dict[str, Any], View], object]) -> Callable[[Launch, View], Launch]:
    """Another plan for sandlock."""

    def change_of(launch: Launch, view: View) -> Launch:
        told = marshal.loads(launch.passed[1])
        change(told, view)
        return given(1, marshal.dumps(told))(launch, view)

    return change_of


def more(key: str, where: str) -> Callable[[Launch, View], Launch]:
    return plan(lambda told, view: told[key].append(where.format(room=view.room, house=view.room.parent)))


def looking(*calls: str) -> bytes:
    """The filter beneath Landlock without the rules about some calls."""
    rules = tuple(rule for rule in filters._LOOKS if rule.call not in calls)
    return filters._program(rules, platform.machine())


SANDLOCK: dict[str, tuple[Level, dict[str, Any], str]] = {
    "datagrams": ("look", {"breaks": passed(looking("socket"))}, "reached UDP"),
    "sockets": ("look", {"breaks": passed(looking("socket"))}, "reached a Unix socket"),
    "pairs of sockets": ("look", {"breaks": passed(looking("socketpair"))}, "reached a Unix socket by a datagram"),
    "leases": ("look", {"breaks": passed(looking("fcntl"))}, "held up others by a lease"),
    "the filter": ("look", {"breaks": passed(_EVERYTHING_ALLOWED)}, "changed times outside"),
    "the filter of attributes": ("look", {"breaks": passed(filters.sockets(False))}, "changed rights outside"),
    "files outside": ("look", {"breaks": more("readable", "{house}/outside")}, "read a secret outside"),
    "files outside to write": ("look", {"breaks": more("writable", "{house}/outside")}, "wrote into a file outside"),
    "links to what is not there": (
        "look",
        {"breaks": more("writable", "{house}/outside")},
        "made a file outside through a link",
    ),
    "processes": ("look", {"breaks": more("readable", "/proc")}, "saw another program"),
    "the machine behind /proc": (
        "look",
        {"breaks": more("writable", "/proc/sys")},
        "opened a file of /proc for writing",
    ),
    "the room": ("look", {"breaks": more("writable", "{room}")}, "wrote into its room"),
    "what is hidden": ("look", {"seen": lambda view: replace(view, hidden=())}, "read what is hidden"),
    "no temporary folder": (
        "look",
        {"breaks": plan(lambda told, view: told["writable"].remove(str(view.temporary)))},
        "had no temporary folder",
    ),
    "no devices": (
        "look",
        {"breaks": plan(lambda told, view: told["readable"].remove("/dev/urandom"))},
        "had no /dev/urandom",
    ),
}
CASES = [("bubblewrap", what) for what in BUBBLEWRAP] + [("sandlock", what) for what in SANDLOCK]


@pytest.mark.parametrize(("name", "what"), CASES)
def test_each_way_out_is_noticed(name: Setting, what: str) -> None:
    whole = choose(held(name)).sandbox
    assert whole is not None
    level, broken, wanted = (BUBBLEWRAP if name == "bubblewrap" else SANDLOCK)[what]
    said = prove(Broken(whole, **broken), level)
    assert said.startswith("a command in it ")
    assert wanted in said


@pytest.mark.parametrize("level", ["look", "work", "network"])
def test_against_a_whole_one_there_is_nothing_to_say(sandbox: Sandbox, level: Level) -> None:
    if level in sandbox.levels:
        assert prove(Broken(sandbox), level) == ""


def _able(name: Setting) -> bool:
    """Whether this machine can hold a command in by this way, whatever we make of it."""
    if name == "bubblewrap":
        words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
        return bool(shutil.which("bwrap")) and subprocess.run(words, check=False, capture_output=True).returncode == 0
    landlock = ctypes.CDLL(None).syscall(444, None, 0, 1) if sys.platform == "linux" else 0  # its version
    return bool(landlock >= 6)


@pytest.mark.parametrize(
    ("name", "level"), [("bubblewrap", "look"), ("bubblewrap", "work"), ("bubblewrap", "network"), ("sandlock", "look")]
)
def test_where_the_machine_lets_it_each_holds(name: Setting, level: Level) -> None:
    if not _able(name):
        pytest.skip(f"{name} cannot work here")
    found = proof._WAYS[name]()
    assert not isinstance(found, str)
    assert level in found.levels
    assert prove(found, level) == ""
    assert choose(name).sandbox == found


@dataclass(frozen=True, slots=True)
class Nothing:
    """No sandbox at all: everything runs on the host."""

    name: str = "nothing"
    levels: tuple[Level, ...] = ("look", "work", "network")

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        return Launch(argv=argv, environment={"TMPDIR": str(view.temporary)})


def test_where_nothing_holds_a_command_everything_gets_through() -> None:
    said = prove(Nothing(), "look")
    for words in (
        *("read a secret outside", "read what is hidden", "wrote outside", "wrote into a file outside", "reached TCP"),
        *("wrote outside through a link", "changed rights outside", "changed times outside", "reached UDP"),
        *("saw another program", "ended another program", "reached a Unix socket", "reached a Unix socket outside"),
        *(
            "made a file outside through a link",
            "wrote outside by a path that was swapped",
            "held up others by a lease",
        ),
        *(
            "made a file that runs as its user",
            "reached a Unix socket by a datagram",
            "opened a file of /proc for writing",
        ),
        *("wrote into its room", "wrote into a file of its room", "changed a file that it must not"),
    ):
        assert words in said


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Callable[[], Sandbox | str]]]:
    """The ways of a machine that nothing is known of yet, to be filled; `auto` takes them as they come."""
    made: dict[str, Callable[[], Sandbox | str]] = {}
    monkeypatch.setattr(proof, "_WAYS", made)
    proof._proved.cache_clear()
    yield made
    proof._proved.cache_clear()


@dataclass(frozen=True, slots=True)
class Starts:
    """Starts a program of its own instead of what it is given."""

    argv: tuple[str, ...]
    name: str = "starts"
    levels: tuple[Level, ...] = ("look",)

    def launch(self, view: View, argv: tuple[str, ...]) -> Launch:
        return Launch(argv=self.argv, environment={})


@SPARSE
def test_each_level_is_proved(sandbox: Sandbox, ways: dict[str, Callable[[], Sandbox | str]]) -> None:
    ways["bubblewrap"] = lambda: Broken(sandbox, seen=lambda view: replace(view, level="look"))
    found = choose("auto")
    assert found.sandbox is None
    assert "could not write into its room" in found.why


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("/bin/true",), "it said nothing"),
        (("/bin/echo", "no permission"), "no permission"),
        (("/bin/echo", "[1, 2"), "could not be tried"),
        (("/missing/bwrap", "--unshare-all"), "No such file"),
        (("/bin/cat", "/dev/full/none"), "Not a directory"),
    ],
)
def test_one_that_runs_nothing_is_none_and_says_why(
    ways: dict[str, Callable[[], Sandbox | str]], argv: tuple[str, ...], why: str
) -> None:
    ways["bubblewrap"] = lambda: Starts(argv)
    found = choose("bubblewrap")
    assert found.sandbox is None
    assert why in found.why
    assert "to get one" in found.why
    assert len(found.why) < 800


def test_one_that_hangs_is_none(
    ways: dict[str, Callable[[], Sandbox | str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(proof, "_SECONDS", 0.05)
    ways["bubblewrap"] = lambda: Starts(("/bin/sh", "-c", "read line < /dev/zero"))
    found = choose("auto")
    assert found.sandbox is None
    assert "timed out" in found.why


def test_one_that_raises_is_none(ways: dict[str, Callable[[], Sandbox | str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    ways["bubblewrap"] = lambda: Bubblewrap("/usr/bin/bwrap")
    found = choose("bubblewrap")
    assert found.sandbox is None
    assert "there is no filter of system calls for riscv64" in found.why


@SPARSE
def test_those_that_do_not_hold_are_passed_over_with_the_reason(
    sandbox: Sandbox, ways: dict[str, Callable[[], Sandbox | str]]
) -> None:
    ways["bubblewrap"] = lambda: "not installed"
    ways["sandlock"] = Nothing
    ways["seatbelt"] = lambda: sandbox
    found = choose("auto")
    assert found.sandbox is sandbox
    assert found.why.startswith("proved at start; bubblewrap: not installed; sandlock: a command in it read a secret")
    for name in ("bubblewrap", "sandlock"):
        alone = choose(name)  # type: ignore[arg-type]
        assert alone.sandbox is None, "nothing else is taken where one is named"
    assert choose("none").sandbox is None
    assert "tools.exec.sandbox" in choose("none").why


@SPARSE
def test_what_is_proved_is_not_proved_again(sandbox: Sandbox, ways: dict[str, Callable[[], Sandbox | str]]) -> None:
    asked = list[str]()

    def way() -> Sandbox:
        asked.append("once")
        return sandbox

    ways["sandlock"] = way
    assert [choose("auto"), choose("sandlock"), choose("auto")] == [choose("auto")] * 3
    assert asked == ["once"]
    assert choose("auto").sandbox is sandbox
