"""The wheel holds the four packages and what they need, and its command works away from the checkout."""

import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("packaging")  # built once

ROOT = Path(__file__).parents[2]
HOUSES = {"bot", "channels", "agent", "heartbeat"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of what the repository holds, so that nothing else slips in and nothing is left behind."""
    source = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=source, check=True, capture_output=True
    )
    (built,) = (source / "dist").glob("*.whl")
    return built


def test_it_holds_exactly_the_four_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {Path(name) for name in archive.namelist()}
    assert {name.parts[0] for name in names if not name.parts[0].endswith(".dist-info")} == HOUSES
    inside = {name for name in names if name.parts[0] in HOUSES}
    assert {name.suffix for name in inside} <= {".py", ".sql", ".md", ".html", ".toml"}
    expected = {
        path.relative_to(ROOT)
        for house in HOUSES
        for path in (ROOT / house).rglob("*")
        if path.suffix in (".py", ".sql", ".md", ".toml")
    }
    assert expected - inside == set()


def test_the_installed_command_works_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "its own venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "-q", "--offline", "--no-deps", "--python", python, wheel],
        check=True,
        capture_output=True,
    )
    # Its dependencies are those of this environment, behind its own packages.
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=elsewhere, env=environ, capture_output=True, text=True, check=True)
        return done.stdout

    assert run(home / "bin" / "hark", "--help").startswith("Usage: hark")
    assert run(home / "bin" / "hark", "config", "get", "agent.name") == "Hark\n"
    where = run(python, "-c", "import bot, channels, agent, heartbeat as h; print(bot.__file__, h.__file__)")
    assert where.split("\n")[0].count(str(packages)) == 2
