"""`hark run` as a process of its own: started with a configuration, asked over HTTP, watched from outside."""

import asyncio
import contextlib
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
from ruamel.yaml import YAML

from agent.models.base import ModelApi
from bench.model import KEY, ROOT, Asked, Model, question
from bench.service import settings

_PATIENCE = 60.0


class HarkProcess:
    """A running service. started: seconds from the start of the process to the first `/readyz` that was not red."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, session: aiohttp.ClientSession) -> None:
        self._process = process
        self._url = url
        self._session = session
        self.started = 0.0

    async def wait_ready(self) -> None:
        """Return once `/readyz` says yes."""
        begun = time.monotonic()
        while time.monotonic() < begun + _PATIENCE:
            with contextlib.suppress(aiohttp.ClientError):
                async with self._session.get(f"{self._url}/readyz") as response:
                    if response.status == 200:
                        return
            if self._process.returncode is not None:
                break
            await asyncio.sleep(0.005)
        raise RuntimeError(f"the process did not become ready (exit code {self._process.returncode})")

    async def ask(self, session: int) -> Asked:
        """Post a question and wait for the answer with a second request."""
        number, text = question()
        sent = time.monotonic()
        run_id = await self.post(session, text)
        status = 202
        while status == 202:  # the wait has ended, the run goes on
            async with self._session.get(f"{self._url}/v1/agent/{run_id}?wait=60") as response:
                status, answer = response.status, await response.json()
        done = time.monotonic()
        if answer["status"] != "ok":
            raise RuntimeError(f"the run ended as {answer}")
        return Asked(number, sent, done)

    async def post(self, session: int, text: str) -> str:
        """Post a message and return its run id; nobody waits for the answer."""
        body = {"message": text, "session": f"agent:main:http:direct:bench{session}"}
        async with self._session.post(f"{self._url}/v1/agent", json=body) as response:
            accepted: dict[str, Any] = await response.json()
            if response.status != 202:
                raise RuntimeError(f"not accepted: {accepted}")
        return str(accepted["run_id"])

    def cpu(self) -> float:
        """Seconds of processor time so far, of all its threads."""
        return time.clock_gettime(~self._process.pid << 3 | 2)  # clock_getcpuclockid(3), which Python has not

    def memory(self) -> float:
        """Resident MiB."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("no VmRSS in /proc")


@contextlib.asynccontextmanager
async def hark_over_http(home: Path, model: Model, api: ModelApi) -> AsyncIterator[HarkProcess]:
    """`hark run` while the context lasts."""
    port = _free_port()
    config = home / "config.yaml"
    with config.open("w") as file:
        YAML(typ="safe").dump(settings(home, model, api, port=port), file)
    async with _running(home, port, "-m", "bot", "run", "--config", str(config)) as process:
        yield process


@contextlib.asynccontextmanager
async def limit_over_http(home: Path, model: Model) -> AsyncIterator[HarkProcess]:
    """The least that any server must do (`limit_server.py`), while the context lasts; asked as Hark is."""
    port = _free_port()
    given = (str(port), model.base_url("openai-chat"), KEY, str(home / "limit.db"))
    async with _running(home, port, "-m", "bench.limit_server", *given) as process:
        yield process


@contextlib.asynccontextmanager
async def _running(home: Path, port: int, *command: str) -> AsyncIterator[HarkProcess]:
    """A process of Python while the context lasts, from when it is ready on; home: where it writes its log."""
    log = (home / "hark.log").open("wb")
    begun = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command),
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(home)},  # the developer's own `hark` is not to find it
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
    try:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            hark = HarkProcess(process, f"http://127.0.0.1:{port}", session)
            try:
                await hark.wait_ready()
            except RuntimeError as error:
                raise RuntimeError(f"{error}: {(home / 'hark.log').read_text()[-2000:]}") from None
            hark.started = time.monotonic() - begun
            yield hark
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        log.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
