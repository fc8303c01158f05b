"""`scripts/setup` without a network: when it works, when it does nothing, and what it says when it cannot.

The installer is a small program that notes how it was called; the interpreter is the real one, behind a small
program that takes something away from it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Machine:
    """A checkout in a folder with a space in its name, and a PATH with nothing but the system's basics."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "check out"
        self.programs = folder / "programs"
        self.programs.mkdir()
        (self.checkout / "scripts").mkdir(parents=True)
        for name in ("pyproject.toml", "constraints.txt", "scripts/setup", "scripts/link"):
            shutil.copy(ROOT / name, self.checkout / name)
        for name in ("cat", "cksum", "dirname", "ln", "mkdir", "rm", "sh"):
            (self.programs / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is missing"))

    def program(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def set_up(self, script: str = "setup", **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", f"scripts/{script}"],
            cwd=self.checkout,
            env={"PATH": str(self.programs), **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def installs(self) -> list[str]:
        """How the installer was called since the last time this was asked."""
        log = self.checkout / "installs"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With Python as it should be, and uv."""
    machine = Machine(tmp_path)
    real = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    machine.program("python3", f'exec "{real}" "$@"')
    machine.program("uv", 'case "$1" in --version) echo uv 1;; *) echo "$*" >>installs;; esac')
    return machine


def test_installs_pinned_and_then_does_nothing(machine: Machine) -> None:
    done = machine.set_up()
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.installs() == ["pip install --python .venv/bin/python --compile-bytecode -q -c constraints.txt -e ."]
    assert (machine.checkout / ".venv/bin/python").exists()
    done = machine.set_up()
    assert (done.returncode, done.stdout, machine.installs()) == (0, "", [])


def test_what_is_ours_is_compiled_as_well(machine: Machine) -> None:
    (machine.checkout / "bot").mkdir()
    (machine.checkout / "bot/one.py").write_text("ONE = 1\n")
    assert machine.set_up().returncode == 0
    assert list((machine.checkout / "bot").rglob("one.*.pyc"))


@pytest.fixture
def installed(machine: Machine) -> Path:
    """The command as an installation makes it."""
    command = machine.checkout / ".venv/bin/hark"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\necho it is me\n")
    command.chmod(0o755)
    return command


def test_the_command_is_linked_where_the_shell_looks(machine: Machine, installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home/.local/bin"
    where = {"HOME": str(tmp_path / "home"), "PATH": f"{machine.programs}:{folder}"}
    done = machine.set_up("link", **where)
    assert (done.stdout, done.stderr) == (f"The command hark is there: {folder}/hark leads to this Hark.\n", "")
    found = subprocess.run(["/bin/sh", "-c", "hark"], env=where, capture_output=True, text=True, check=True)
    assert found.stdout == "it is me\n"
    assert machine.set_up("link", **where).stdout == ""
    installed.rename(tmp_path / "elsewhere")
    machine.checkout = machine.checkout.rename(tmp_path / "moved")
    (tmp_path / "elsewhere").rename(machine.checkout / ".venv/bin/hark")
    assert "leads to this Hark" in machine.set_up("link", **where).stdout, "what led nowhere is replaced"


def test_where_no_link_can_be_the_line_to_copy_is_said(machine: Machine, installed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home/.local/bin"
    said = machine.set_up("link", HOME=str(tmp_path / "home")).stdout.splitlines()
    assert not folder.exists()
    copied = subprocess.run(
        ["/bin/sh", "-c", f"{said[-1]}\nhark"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert copied.stdout == "it is me\n"
    folder.mkdir(parents=True)
    (folder / "hark").write_text("#!/bin/sh\necho another\n")
    (folder / "hark").chmod(0o755)
    where = {"HOME": str(tmp_path / "home"), "PATH": f"{machine.programs}:{folder}"}
    assert machine.set_up("link", **where).stdout.splitlines() == said
    assert "another" in (folder / "hark").read_text(), "the one of somebody else stays"


def test_extras_are_added_once_and_suffice_for_running(machine: Machine) -> None:
    machine.set_up()
    machine.installs()
    machine.set_up(EXTRAS="dev")
    (install,) = machine.installs()
    assert install.endswith("--compile-bytecode -q -c constraints.txt -e .[dev]")
    machine.set_up(EXTRAS="dev")
    machine.set_up()
    assert machine.installs() == []


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_dependencies_installs_again(machine: Machine, name: str) -> None:
    machine.set_up()
    machine.installs()
    with (machine.checkout / name).open("a") as file:
        file.write("# changed\n")
    machine.set_up()
    assert len(machine.installs()) == 1


def test_an_activated_environment_is_made_anew(machine: Machine) -> None:
    machine.set_up()
    machine.installs()
    own = machine.checkout / ".venv/bin"
    (machine.programs / "uv").rename(own / "uv")  # as where it was installed for want of another
    machine.program("uv", "echo from outside >>installs")
    with (machine.checkout / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    done = machine.set_up(PATH=f"{own}:{machine.programs}")
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.installs() == ["from outside"] * 2, "asked for its version, and to install"


def test_a_moved_checkout_installs_again(machine: Machine, tmp_path: Path) -> None:
    machine.set_up()
    machine.installs()
    machine.checkout = machine.checkout.rename(tmp_path / "moved")
    machine.set_up()
    assert len(machine.installs()) == 1


def test_a_failed_install_is_not_taken_for_a_finished_one(machine: Machine) -> None:
    machine.program("uv", 'test "$1" = --version')
    assert machine.set_up().returncode != 0
    assert machine.set_up().returncode != 0


# making an environment with pip takes seconds, and what comes then is the same
@pytest.mark.parametrize("uv", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_without_a_network_it_ends_in_one_sentence(machine: Machine, uv: bool) -> None:
    machine.program("uv", f'[ "$1" != --version ] || exit {0 if uv else 1}\nseq 50 >&2\nexit 1')
    done = machine.set_up(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode != 0
    assert done.stdout.splitlines() == ["Setting up Hark in .venv ..."]
    assert done.stderr.splitlines() == [
        "The packages that Hark needs could not be installed: is there a network? .venv/setup.log has the details."
    ]
    assert (machine.checkout / ".venv/setup.log").read_text().strip()
    if uv:
        assert machine.set_up(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0").returncode != 0


def test_an_old_python_is_refused_in_one_line(machine: Machine) -> None:
    machine.program("python3", "exit 1")
    done = machine.set_up()
    assert done.returncode != 0
    assert done.stderr.splitlines() == [
        "Hark needs Python 3.11 or later, and python3 is not. Install it, or set PYTHON to where it is."
    ]


def test_a_newer_python_beside_an_old_one_is_taken(machine: Machine) -> None:
    (machine.programs / "python3").rename(machine.programs / "python3.12")
    machine.program("python3", "exit 1")
    assert machine.set_up().returncode == 0


def test_without_uv_ensurepip_and_pip_one_line_says_what_to_install(machine: Machine) -> None:
    (machine.programs / "uv").unlink()
    python = (machine.programs / "python3").read_text().splitlines()[1]
    machine.program(
        "python3",
        f"""case "$*" in
        *--without-pip*) ;;
        *'-m venv'*) echo 'ensurepip is not available'; exit 1;;
        *'-m pip'*) echo 'No module named pip' >&2; exit 1;;
        esac
        {python}""",
    )
    done = machine.set_up()
    assert done.returncode != 0
    assert done.stderr.splitlines() == [
        "This Python has neither ensurepip nor pip. On Debian or Ubuntu: sudo apt install python3-venv"
    ]
