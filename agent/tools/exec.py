"""`exec`: a shell command in the workspace, for the model: what the configuration or a person allows.

Promises: what runs is what was allowed, in the folder and with the variables that were shown; a command never runs
before its process is stored (see `process`), and nothing that it began runs after the call, however it ended, unless it
was to go on in the background (elsewhere than on Linux: nothing of its session); output is bounded in memory; no key or
token of the service is in its environment. Where it starts is inside the workspace; what it may then touch is limited
by what is allowed alone, its own gate included: `docs/security.md`.
"""

import asyncio
import codecs
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial

from pydantic import Field, field_validator

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.shell import SAFE_ENVIRONMENT, is_harmless_variable
from agent.tools.background import Background
from agent.tools.base import Ask, CallContext, Parameters, Tool
from agent.tools.leftovers import start_time
from agent.tools.output import Paced
from agent.tools.permission import Permission
from agent.tools.process import OUTPUT_GRACE_SECONDS, GatedProcess, ending
from agent.tools.workspace import Workspace

MAX_COMMAND_CHARACTERS = 30_000  # the system takes 128 KiB in one argument, a character is at most 4 bytes
TIMEOUT_GRACE_SECONDS = 2.0  # between TERM and KILL when the time limit is reached
EARLY_SECONDS = 1.0  # in which a command in the background may fail and be told as if it were not

_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
_EXCEPTION = "" if sys.platform == "linux" else ", unless they start a session of their own"
_UNICODE = re.compile(r"utf-?8|^(C|POSIX)?$", re.IGNORECASE)
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class ExecParameters(Parameters):
    """Of `exec`."""

    command: str = Field(
        min_length=1, max_length=MAX_COMMAND_CHARACTERS, description="Shell command; it gets no terminal."
    )
    cwd: str = Field(default=".", description="Folder to start in, relative to the workspace.")
    env: dict[str, str] = Field(default={}, description="Further variables of its environment.")
    timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        description="End it after that long, at most the configured limit.",
    )
    background: bool = Field(default=False, description="Let it run on; `process` looks after it.")

    @field_validator("command", "env")
    @classmethod
    def _without_nul(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        if "\x00" in (value if isinstance(value, str) else "".join(value.values())):
            raise ValueError("a command and its variables hold no NUL character")
        return value


class ExecTool(Tool[ExecParameters]):
    """Runs shell commands, each with everything it begins below a gate of its own."""

    name = "exec"
    description = (
        "Run a shell command in the workspace; returns its output and exit code. Everything it began ends with it"
        f"{_EXCEPTION}. A person may be asked first."
    )
    parameters = ExecParameters
    changes = True
    trusted_only = True

    def __init__(
        self,
        workspace: Workspace,
        timeout_seconds: float,
        permission: Permission,
        background: Background,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """timeout_seconds: default and most of a call. environ: where the few variables passed on come from."""
        self._workspace = workspace
        self._timeout_seconds = timeout_seconds
        self._permission = permission
        self._background = background
        self._environment = scrubbed(environ)
        self._shell = shutil.which("bash", path=self._environment["PATH"]) or "/bin/sh"

    async def asks(self, parameters: ExecParameters, context: CallContext) -> Ask | None:
        folder = await asyncio.to_thread(self._workspace.folder, parameters.cwd)
        self._environment_of(parameters)
        if self._permission.is_free:
            return None
        command, limit = parameters.command, parameters.timeout_seconds
        known = {name: self._environment[name] for name in ("HOME",) if name in self._environment}
        judgement = await asyncio.to_thread(self._permission.of, command, folder, known | parameters.env)
        missed, rules = (*judgement.unread, *judgement.uncovered), judgement.rules("host")
        for name, value in parameters.env.items():
            if not is_harmless_variable(name, value):
                missed, rules = (*missed, f"`{name}` is given to it, which may change what it does."), ()
        if not self._shell.endswith("/bash"):  # what was understood is what bash makes of it
            missed, rules = (*missed, "There is no bash on this machine, so it cannot be told what it does."), ()
        return self._permission.ask(
            bound=(self.name, context.session_key, command, str(folder), parameters.env, limit, parameters.background),
            subject=command,
            missed=missed,
            facts=_facts(parameters),
            risks=judgement.risks,
            rules=rules,
        )

    async def run(self, parameters: ExecParameters, context: CallContext) -> ToolOutput:
        """One line that says how the command ended, then what it wrote, stdout and stderr as they came."""
        try:
            folder = await asyncio.to_thread(self._workspace.folder, parameters.cwd)
            make = partial(GatedProcess, self._shell, parameters.command, folder, self._environment_of(parameters))
            if parameters.background:
                return await self._in_background(partial(make, has_input=True), parameters, context)
            return await self._to_its_end(make, parameters.timeout_seconds, context)
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror}.") from error

    async def _in_background(
        self, make: Callable[..., GatedProcess], parameters: ExecParameters, context: CallContext
    ) -> ToolOutput:
        one = await self._background.start(make, parameters.command, parameters.timeout_seconds, context)
        try:
            await one.wait(EARLY_SECONDS, to_end=True)
        except asyncio.CancelledError:
            one.end("ended because its call was stopped")
            await one.over.wait()
            raise
        if not one.ending:
            said = f"In the background as {one.name}. Its end will be told; `process` polls, feeds and kills it."
            return ToolOutput(text=f"[running]\n{said}\n{one.fresh()}", goes_on=True)
        self._background.forget(one)
        return ToolOutput(text=f"[{one.ending}]\n{one.fresh()}", is_error=one.ending != ending(0))

    async def _to_its_end(
        self, make: Callable[..., GatedProcess], seconds: float | None, context: CallContext
    ) -> ToolOutput:
        limit = min(seconds or self._timeout_seconds, self._timeout_seconds)
        output = self._background.overflow.spill(f"{context.turn_id}:{context.call_id}")
        updates = Paced(context.update)
        characters, mask = codecs.getincrementaldecoder("utf-8")("replace"), self._background.overflow.mask()

        def take(data: bytes) -> None:
            if head := output.add(mask.feed(data)):  # of endless output nobody is told more
                updates.add(characters.decode(head))

        with closing(updates):
            async with make(take) as process:
                started = await asyncio.to_thread(start_time, process.pid)
                await context.started(process.pid, started or "")
                process.open_gate()
                try:
                    async with asyncio.timeout(limit):
                        await process.wait()
                    await process.last_words(OUTPUT_GRACE_SECONDS)
                    status = await process.end()
                    how = ending(status)
                except TimeoutError:
                    status = await process.end(TIMEOUT_GRACE_SECONDS) or None
                    how = f"stopped after its time limit of {limit:g} s"
        output.add(mask.feed(b"", last=True))
        text = await asyncio.to_thread(output.text)
        return ToolOutput(text=f"[{how}]\n{text or '[no output]'}", is_error=status != 0)

    def _environment_of(self, parameters: ExecParameters) -> dict[str, str]:
        """Raises ToolError when a variable has no name."""
        if refused := sorted(name for name in parameters.env if not _VARIABLE.fullmatch(name)):
            raise ToolError(f"{', '.join(map(repr, refused))} cannot be the name of a variable.")
        return {**self._environment, **parameters.env}


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: a short list of names, so that no secret of the service is among them.

    In another encoding than UTF-8 a shell may read other words than were judged.
    """
    kept = {name: environ[name] for name in _KEPT_VARIABLES if name in environ}
    if not all(_UNICODE.search(kept.get(name, "")) for name in ("LANG", "LC_ALL", "LC_CTYPE")):
        kept["LC_ALL"] = "C.UTF-8"
    return {"PATH": _DEFAULT_PATH, **kept, "TERM": "dumb", **SAFE_ENVIRONMENT}


def _facts(parameters: ExecParameters) -> list[str]:
    """What a person should know of a call besides its command."""
    facts = [] if parameters.cwd == "." else [f"It starts in {json.dumps(parameters.cwd)}."]
    if parameters.env:
        variables = " ".join(f"{name}={json.dumps(value)}" for name, value in parameters.env.items())
        facts.append(f"Its environment has {variables}.")
    if parameters.background:
        facts.append("It runs on in the background until it ends, is killed, or the service stops.")
    return facts
