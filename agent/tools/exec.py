"""`exec`: a shell command in the workspace, for the model. Offered only when the configuration says `full`.

Promises: a command never runs before its process is stored (see `process`), and nothing that it began runs after the
call, however it ended (elsewhere than on Linux: nothing of its session); output is bounded in memory; no key or token
of the service is in its environment. Where it starts is inside the workspace; what it may then touch is not limited
here, its own gate included: `docs/security.md`.
"""

import asyncio
import codecs
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, field_validator

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.tools.base import CallContext, Parameters, Tool
from agent.tools.leftovers import start_time
from agent.tools.output import HeadAndTail
from agent.tools.process import GatedProcess
from agent.tools.workspace import Workspace

MAX_COMMAND_CHARACTERS = 30_000  # the system takes 128 KiB in one argument, a character is at most 4 bytes
ABORT_SECONDS = 0.1  # between TERM and KILL when the run is aborted, of the 200 ms that /stop may take
TIMEOUT_GRACE_SECONDS = 2.0  # the same when the time limit is reached
OUTPUT_GRACE_SECONDS = 0.2  # for what a pipeline still writes when its shell has ended

_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
_EXCEPTION = "" if sys.platform == "linux" else ", unless they start a session of their own"
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class ExecParameters(Parameters):
    """Of `exec`."""

    command: str = Field(
        min_length=1, max_length=MAX_COMMAND_CHARACTERS, description="Shell command; it gets no input and no terminal."
    )
    cwd: str = Field(default=".", description="Folder to start in, relative to the workspace.")
    timeout_seconds: float | None = Field(
        default=None, gt=0, description="End it after that long; the configured limit is the default and the most."
    )

    @field_validator("command")
    @classmethod
    def _without_nul(cls, command: str) -> str:
        if "\x00" in command:
            raise ValueError("a command holds no NUL character")
        return command


class ExecTool(Tool[ExecParameters]):
    """Runs shell commands, each with everything it begins below a gate of its own."""

    name = "exec"
    description = (
        "Run a shell command in the workspace and return its output and exit code. "
        f"Processes left in the background end with the command{_EXCEPTION}. Long output loses its middle."
    )
    parameters = ExecParameters
    changes = True
    trusted_only = True

    def __init__(
        self, workspace: Workspace, timeout_seconds: float, *, environ: Mapping[str, str] = os.environ
    ) -> None:
        """timeout_seconds: default and most of a call. environ: where the few variables passed on come from."""
        self._workspace = workspace
        self._timeout_seconds = timeout_seconds
        self._environment = scrubbed(environ)
        self._shell = shutil.which("bash", path=self._environment["PATH"]) or "/bin/sh"

    async def run(self, parameters: ExecParameters, context: CallContext) -> ToolOutput:
        """One line that says how the command ended, then what it wrote, stdout and stderr as they came."""
        limit = min(parameters.timeout_seconds or self._timeout_seconds, self._timeout_seconds)
        output = HeadAndTail()
        try:
            folder = await asyncio.to_thread(self._workspace.folder, parameters.cwd)
            status = await self._run(parameters.command, folder, limit, output, context)
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror}.") from error
        ending = f"stopped after its time limit of {limit:g} s" if status is None else _ending(status)
        return ToolOutput(text=f"[{ending}]\n{output.text() or '[no output]'}", is_error=status != 0)

    async def _run(
        self, command: str, folder: Path, limit: float, output: HeadAndTail, context: CallContext
    ) -> int | None:
        """The exit status, negative for a signal; None: the time limit was reached."""
        characters = codecs.getincrementaldecoder("utf-8")("replace")

        def take(data: bytes) -> None:
            if head := output.add(data):  # of endless output nobody is told more
                context.update(characters.decode(head))

        async with GatedProcess(self._shell, command, folder, self._environment, take, ABORT_SECONDS) as process:
            started = await asyncio.to_thread(start_time, process.pid)
            await context.started(process.pid, started or "")
            process.open_gate()
            try:
                async with asyncio.timeout(limit):
                    await process.wait()
            except TimeoutError:
                await process.end(TIMEOUT_GRACE_SECONDS)
                return None
            await process.last_words(OUTPUT_GRACE_SECONDS)
            return await process.end()


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: a short list of names, so that no secret of the service is among them."""
    kept = {name: environ[name] for name in _KEPT_VARIABLES if name in environ}
    return {"PATH": _DEFAULT_PATH, **kept, "TERM": "dumb"}


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"ended by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
