"""What the kernel holds: memory that no mapping shows, page tables, threads; and that no group is left behind."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.sandbox import cgroup
from agent.sandbox.base import Bounds, Launch
from agent.sandbox.cgroup import Groups, find, groups
from agent.tools import low_memory
from agent.tools.process import GatedProcess

MEGABYTE = 1024**2
SMALL = Bounds(processes=10, memory=100 * MEGABYTE, file=1024 * MEGABYTE, disk=1024**4)
KERNEL = pytest.mark.skipif(groups() is None, reason="this process may make no cgroup")
# 300 MB in a file of memory that is mapped nowhere.
UNMAPPED = (
    "import os\nfd = os.memfd_create('x')\nfor _ in range(300):\n  os.write(fd, b'x' * 2**20)\nprint('all of it')"
)
# Page tables of 200 MB, for pages of which each is the same one of zeros.
TABLES = (
    "import mmap, sys\nsize = 100 << 30\n"
    "m = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)\n"
    "for at in range(0, size, 2 << 20): m[at]\n"
    "print('all of it')"
)
FORKS = (
    "import os, signal\nmade = []\ntry:\n  while len(made) < 100:\n    pid = os.fork()\n"
    "    if not pid: signal.pause()\n    made.append(pid)\nexcept OSError: pass\nprint(len(made))"
)


async def ran(code: str, bounds: Bounds | None = SMALL) -> tuple[str, str]:
    """Run Python, and return what it said and why it was ended."""
    said: list[bytes] = []
    launch = Launch(argv=(sys.executable, "-c", code), environment={}, bounds=bounds)
    async with GatedProcess(launch, Path("/tmp"), said.append) as process:
        process.open_gate()
        await process.wait()
        await process.end()
    return b"".join(said).decode(), process.why


@KERNEL
@pytest.mark.parametrize("code", [UNMAPPED, TABLES])
async def test_memory_that_no_process_shows_counts(code: str) -> None:
    assert await ran(code) == ("", "it used more than 100 MB of memory")


@KERNEL
async def test_a_burst_of_processes_ends_at_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    said, _ = await ran(FORKS)
    assert 10 < int(said or "39") < 40


@KERNEL
async def test_a_group_is_there_before_the_command_and_gone_behind_it() -> None:
    said, why = await ran("print(open('/proc/self/cgroup').read())")
    assert f"/hark-{os.getpid()}-" in said
    assert not why
    assert own() == []
    assert not is_inside()


@KERNEL
def test_what_a_command_leaves_in_its_group_is_killed_with_it() -> None:
    found = groups()
    assert found
    group = found.make(SMALL)
    left = subprocess.Popen(["sleep", "1000"])
    (group.folders[0] / "cgroup.procs").write_text(str(left.pid))
    found.remove(group.folders)
    assert left.wait() == -9
    found.sweep()
    assert own() == []


@KERNEL
def test_groups_of_a_service_that_died_are_removed_and_those_of_a_living_one_stay() -> None:
    found = groups()
    assert found
    living = subprocess.Popen(["sleep", "1000"])
    try:
        started = Path(f"/proc/{living.pid}/stat").read_text().split()[21]
        kept = found.bases[0] / f"hark-{living.pid}-{started}-7"
        kept.mkdir()
        left = found.bases[0] / f"hark-{living.pid}-{int(started) - 1}-7"  # of another process with that pid
        left.mkdir()
        found.remove(found.make(SMALL).folders)
        assert kept.exists()
        assert not left.exists()
    finally:
        living.kill()
        living.wait()
    found.sweep()
    assert not kept.exists()


def is_inside() -> bool:
    """Whether this process is in the group of a command."""
    return "/hark-" in Path("/proc/self/cgroup").read_text()


def own() -> list[Path]:
    """The groups of this process's commands."""
    found = groups()
    assert found
    found.sweep()
    return [path for base in found.bases for path in base.glob(f"hark-{os.getpid()}-*")]


def second(root: Path, *, controllers: str = "cpu memory pids") -> Path:
    """A folder that looks like version 2, and the group in it that a service has."""
    (root / "cgroup.controllers").write_text(controllers)
    service = root / "system.slice" / "hark.service"
    service.mkdir(parents=True)
    (service / "cgroup.controllers").write_text(controllers)
    return service


def test_version_2_moves_the_service_and_gives_each_command_its_limits(tmp_path: Path) -> None:
    service = second(tmp_path)
    found = find("0::/system.slice/hark.service\n", tmp_path)
    assert found == Groups(2, (service,), (service / "hark-service" / "cgroup.procs",))
    assert (service / "hark-service" / "cgroup.procs").read_text() == str(os.getpid())
    assert (service / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    group = found.make(SMALL)
    (folder,) = group.folders
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "memory.max": str(100 * MEGABYTE),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "40",
        "cpu.weight": "50",
    }
    assert group.plan()["enter"] == [str(folder / "cgroup.procs")]
    assert group.plan()["leave"] == [str(service / "hark-service" / "cgroup.procs")]


def test_version_2_is_found_again_after_a_restart_that_replaced_the_process(tmp_path: Path) -> None:
    service = second(tmp_path)
    before = find("0::/system.slice/hark.service\n", tmp_path)
    assert find("0::/system.slice/hark.service/hark-service\n", tmp_path) == before
    assert not (service / "hark-service" / "hark-service").exists()


@pytest.mark.parametrize("shared", [True, False])
def test_version_2_needs_a_group_of_its_own_with_memory_and_pids(tmp_path: Path, shared: bool) -> None:
    service = second(tmp_path, controllers="cpu memory pids" if shared else "cpu")
    if shared:
        (service / "cgroup.subtree_control").mkdir()  # cannot be written, as where others have processes in the group
    assert find("0::/system.slice/hark.service\n", tmp_path) is None
    if shared:
        assert (service / "cgroup.procs").read_text() == str(os.getpid())


async def test_without_a_group_addresses_are_bounded_and_page_tables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.process.groups", lambda: None)
    said, _ = await ran("import resource; print(resource.getrlimit(resource.RLIMIT_AS))")
    assert said == f"({64 * 1024**3}, {64 * 1024**3})\n"
    waits = TABLES.replace("100 << 30", "55 << 30").replace("print('all of it')", "import signal; signal.pause()")
    _, why = await ran(waits)
    assert why == "it used more than 100 MB of memory"


def test_people_are_told_which_bounds_are_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "groups", lambda: None)
    assert "Delegate=yes" in cgroup.shown()
    monkeypatch.setattr(cgroup, "groups", lambda: Groups(2, (), ()))
    assert cgroup.shown() == "The kernel bounds memory and processes of commands (cgroup v2)"


@pytest.mark.parametrize(("size", "part"), [(51, 0.051), (49, 0.049), (0, 1)])
def test_the_part_of_the_memory_that_is_available_is_read(size: int, part: float) -> None:
    assert low_memory.available(f"MemTotal:  1000 kB\nMemFree: 3 kB\nMemAvailable: {size} kB\n") == part


async def test_the_largest_command_is_ended_while_memory_is_low(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 1000 kB\nMemAvailable: 900 kB\n")
    monkeypatch.setattr(low_memory, "MEMINFO", meminfo)
    monkeypatch.setattr(low_memory, "EVERY", 0.05)
    code = "x = b'x' * ({} << 20)\nprint('there', flush=True)\ninput()"
    said = asyncio.Event()
    large = Launch(argv=(sys.executable, "-c", code.format(80)), environment={})
    small = Launch(argv=(sys.executable, "-c", code.format(1)), environment={})
    async with (
        GatedProcess(large, Path("/tmp"), lambda _: said.set(), has_input=True) as first,
        GatedProcess(small, Path("/tmp"), lambda _: None, has_input=True) as second,
    ):
        for process in (first, second):
            process.open_gate()
        await said.wait()
        meminfo.write_text("MemTotal: 1000 kB\nMemAvailable: 49 kB\n")
        await first.wait()
        meminfo.write_text("MemTotal: 1000 kB\nMemAvailable: 900 kB\n")
        second.write(b"\n")
        await second.wait()
        assert await second.end() == 0
    assert first.why == low_memory.WHY
    assert not second.why
