"""The example of an extension is built, installed beside Hark, and used by the service."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bot.cli.running import forked, program
from tests.forked import ENVIRON, hark

pytestmark = pytest.mark.xdist_group("packaging")  # built once

ROOT = Path(__file__).parents[2]
CONFIG = {
    "agent": {"model": "offline/offline"},
    "owners": ["mailbox:somebody"],
    "queue": {"debounce_ms": 0},
    "gateway": {"port": 0},
    "extensions": ["hark-example"],
    "channels": {"mailbox": {"enabled": True, "folder": "box"}},
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed example."""
    home = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "examples" / "hark-example", home / "source")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel")
    subprocess.run(build, cwd=home / "source", check=True, capture_output=True)
    (wheel,) = (home / "source" / "dist").glob("*.whl")
    options = ("-q", "--offline", "--no-deps", "--no-index", "--target", home / "site")
    subprocess.run((sys.executable, "-m", "uv", "pip", "install", *options, wheel), check=True, capture_output=True)
    return home / "site"


async def test_its_channel_and_its_tool_work(installed: Path, tmp_path: Path) -> None:
    environ = {**ENVIRON, "PYTHONPATH": f"{ROOT}:{installed}"}
    (tmp_path / "box" / "in").mkdir(parents=True)
    (tmp_path / "box" / "in" / "1.txt").write_text('call dice with {"count": 3, "sides": 2}')
    async with program(tmp_path, CONFIG, environ) as service:
        await service.until("outcome=completed")
        found = await doctor(tmp_path, environ)
        service.process.send_signal(signal.SIGTERM)  # what is being delivered is delivered
        assert await service.ended() == 0
        assert list((tmp_path / "box" / "in").iterdir()) == []
        assert any("(sum " in file.read_text() for file in (tmp_path / "box" / "out").iterdir())
        assert ("ok", "hark-example: channel mailbox, tool dice") in found
        assert ("ok", "ready") in found


async def test_without_it_the_service_runs_and_says_what_is_missing(tmp_path: Path) -> None:
    async with forked(tmp_path, CONFIG) as service:
        assert service.said("hark-example is not installed where Hark is")
        done = await asyncio.to_thread(hark, tmp_path, "doctor", "--json")
    assert ("wrong", "channels.mailbox is passed over, since an extension is broken") in findings(done.out)


async def doctor(folder: Path, environ: dict[str, str]) -> list[tuple[str, str]]:
    """What `hark doctor` finds: states and texts."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "doctor", "--json"), cwd=folder, env=environ, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return findings(out)


def findings(out: str | bytes) -> list[tuple[str, str]]:
    return [(one["state"], one["text"]) for one in json.loads(out)]
