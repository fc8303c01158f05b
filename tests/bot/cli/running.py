"""`hark run` with its log line by line: forked, or as a program, because what `os.execve` does shows only there."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from tests.forked import ENVIRON, PATIENCE, Begun, begin
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE

Json = dict[str, Any]
_COMMAND = (sys.executable, "-m", "bot", "run")
READY = "Sandbox for commands"


def settings(telegram: TelegramServer, **more: Any) -> Json:
    """A configuration of which Alice is the owner, on Telegram. more: further keys, by their section."""
    channel = {"token": telegram.token, "base_url": telegram.base_url, "base_file_url": telegram.base_file_url}
    found: Json = {
        "agent": {"model": "offline/offline", "drain_seconds": 5},
        "owners": [f"telegram:{ALICE.id}"],
        "queue": {"debounce_ms": 0},
        "channels": {"telegram": channel},
        "gateway": {"port": 0},
    }
    for name, value in more.items():
        found[name] = {**found.get(name, {}), **value} if isinstance(value, dict) else value
    return found


class Hark:
    """The service in its process."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process | Begun) -> None:
        self.folder, self.process = folder, process
        self.lines: list[str] = []
        self._more = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    def write(self, config: Json) -> None:
        """Write the configuration, as an editor that replaces the file."""
        made = self.folder / "new"
        made.write_text(json.dumps(config))
        made.replace(self.folder / "config.yaml")

    def said(self, part: str) -> list[str]:
        """The lines of the log with these words."""
        return [line for line in self.lines if part in line]

    async def until(self, part: str, count: int = 1) -> list[str]:
        """Return the lines with these words once there are so many."""
        async with asyncio.timeout(PATIENCE):
            while len(found := self.said(part)) < count:
                assert not self._reading.done(), "\n".join(self.lines)
                self._more.clear()
                await self._more.wait()
        return found

    def files(self) -> list[str]:
        """What its descriptors are, without numbers, and without those of code that is just being imported."""
        found = [path.readlink() for path in Path(f"/proc/{self.process.pid}/fd").iterdir() if path.is_symlink()]
        links = [str(link) for link in found if not str(link).startswith((sys.prefix, sys.base_prefix))]
        return sorted(link.partition("[")[0].partition(":")[0] for link in links)

    async def ended(self) -> int:
        """The exit code, once it has ended and everything is read."""
        async with asyncio.timeout(PATIENCE):
            await self._reading
            return await self.process.wait()

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.lines.append(line.decode())
            self._more.set()
        self._more.set()


@contextlib.asynccontextmanager
async def forked(folder: Path, config: Json | None = None) -> AsyncIterator[Hark]:
    """The service in a folder, once it accepts messages. config: written before, unless it is there already.

    A restart ends it with the exit code REPLACED.
    """
    _write(folder, config)
    async with _serving(folder, await begin(folder, "run")) as hark:
        yield hark


@contextlib.asynccontextmanager
async def program(
    folder: Path, config: Json | None = None, environ: Mapping[str, str] = ENVIRON
) -> AsyncIterator[Hark]:
    """The same as a program of its own, which replaces itself when it restarts."""
    _write(folder, config)
    pipes = {"stdin": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*_COMMAND, cwd=folder, env=environ, **pipes)  # type: ignore[arg-type]
    async with _serving(folder, process) as hark:
        yield hark


def _write(folder: Path, config: Json | None) -> None:
    if config is not None:
        (folder / "config.yaml").write_text(json.dumps(config))


@contextlib.asynccontextmanager
async def _serving(folder: Path, process: asyncio.subprocess.Process | Begun) -> AsyncIterator[Hark]:
    hark = Hark(folder, process)
    try:
        await hark.until(READY)
        yield hark
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await hark.ended()
