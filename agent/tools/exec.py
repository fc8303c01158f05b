"""The tool `exec`: runs a shell command in the workspace, confined by the sandbox or as a person allows it.

A command runs only as it was allowed: at the level, in the folder and with the variables that were shown. Its process
is persisted before it runs (see `process`). Nothing that it started runs after the call, however the call ended, unless
it was started in the background; on other systems than Linux this holds for its session. Output is bounded in memory,
and no key or token of the service is in the environment. What a command can see, change and reach follows from its
level and its room (`agent/sandbox`). On the machine itself only a person decides (`docs/security.md`).
"""

import asyncio
import codecs
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import shorten

from pydantic import Field, field_validator

from agent.errors import ToolError
from agent.message import Provenance, ToolOutput, merged
from agent.sandbox.base import Confinement, Launch
from agent.shell import SAFE_ENVIRONMENT, Level, is_harmless_variable
from agent.tools.background import Background, Writes
from agent.tools.base import Ask, CallContext, Parameters, Refused, Sink, Tool
from agent.tools.leftovers import start_time
from agent.tools.lineage import Lineage, Origins, Traced
from agent.tools.output import Paced
from agent.tools.permission import Permission, Verdict
from agent.tools.process import OUTPUT_GRACE_SECONDS, GatedProcess, ending
from agent.tools.workspace import Workspace

MAX_COMMAND_CHARACTERS = 30_000  # the system takes 128 KiB in one argument, a character is at most 4 bytes
TIMEOUT_GRACE_SECONDS = 2.0  # between TERM and KILL when the time limit is reached
# Time limits of commands in the background: the default, and the longest.
BACKGROUND_SECONDS, MOST_BACKGROUND_SECONDS = 12 * 3600.0, 7 * 24 * 3600.0
EARLY_SECONDS = 1.0  # a command in the background that ends within this time is reported like any other

_KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
_EXCEPTION = "" if sys.platform == "linux" else ", unless they start a session of their own"
_UNICODE = re.compile(r"utf-?8|^(C|POSIX)?$", re.IGNORECASE)
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_RESULT = re.compile(r"exit code \d+")  # how a command ends that was not ended by somebody
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

# What the model is told about a command that failed, because it may have needed a higher level.
_HAD: dict[Level, str] = {
    "look": "It ran with needs: look: it could read, change nothing but its temporary folder, and had no network.",
    "work": "It ran with needs: work: it could write in the workspace, but no instruction file, no memory and "
    "nothing that leads git, and had no network.",
    "network": "It ran with needs: network: it could write in the workspace, but no instruction file, no memory and "
    "nothing that leads git, and saw nothing else of this machine.",
}
_MORE: dict[Level, str] = {
    "look": "If it failed for lack of that, call it again with needs: work, network or host; a person may be asked.",
    "work": "If it failed for lack of more, call it again with needs: network or host; a person may be asked.",
    "network": "If it failed for lack of more, call it again with needs: host; a person is asked.",
}

_NOTHING, _NOTHING_NEW = "[no output]", "[no new output]"
# The channels of origins that stand for what a command has read, and what one that rules of the operator allow.
_READ, _READ_BY_RULE = "exec", "exec by rule"

# Where the effect of a command of each level goes.
SINKS: dict[Level, Sink] = {"look": "look", "work": "work", "network": "network", "host": "open"}


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
    needs: Level | None = Field(
        default=None,
        description="look: read; work: write in the workspace; network: that too; host: this machine. May be asked.",
    )

    @field_validator("env")
    @classmethod
    def _named(cls, value: dict[str, str]) -> dict[str, str]:
        if refused := sorted(name for name in value if not _VARIABLE.fullmatch(name)):
            raise ValueError(f"{', '.join(map(repr, refused))} cannot be the name of a variable")
        return value

    @field_validator("command", "env")
    @classmethod
    def _without_nul(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        if "\x00" in (value if isinstance(value, str) else "".join(value.values())):
            raise ValueError("a command and its variables hold no NUL character")
        return value


class ExecTool(Tool[ExecParameters]):
    """Runs shell commands, each below a gate of its own."""

    name = "exec"
    description = (
        "Run a shell command in the workspace; returns its output and exit code. Everything it began ends with it"
        f"{_EXCEPTION}. What only looks runs at once; a person may be asked about more."
    )
    parameters = ExecParameters
    changes = True
    trusted_only = True

    def __init__(
        self,
        workspace: Workspace,
        timeout_seconds: float,
        permission: Permission,
        confinement: Confinement,
        background: Background,
        lineage: Lineage | None = None,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """workspace: the room that commands start in. timeout_seconds: default and longest time limit of a call.
        lineage: knows what the files of the room were made from. environ: variables, of which a few are passed on."""
        self._workspace = workspace
        self._timeout_seconds = timeout_seconds
        self._permission = permission
        self._confinement = confinement
        self._background = background
        self._lineage = lineage or Lineage()
        self._environment = scrubbed(environ)
        self._shell = shutil.which("bash", path=self._environment["PATH"]) or "/bin/sh"

    async def asks(self, parameters: ExecParameters, context: CallContext) -> Ask | None:
        folder = await asyncio.to_thread(self._workspace.folder, parameters.cwd)
        verdict = await asyncio.to_thread(self._verdict, parameters, folder, context)
        return self._ask(parameters, folder, verdict, context)

    def _verdict(self, parameters: ExecParameters, folder: Path, context: CallContext) -> Verdict:
        """Decide at which level a command runs, and why a person must be asked. Blocking. Raises Refused."""
        if context.as_guest and parameters.background:
            raise Refused("It was not executed: whoever asks may only look, and nothing of theirs runs on.")
        known = {name: self._environment[name] for name in ("HOME",) if name in self._environment}
        unruled = [
            f"`{name}` is given to it, which may change what it does."
            for name, value in parameters.env.items()
            if not is_harmless_variable(name, value)
        ]
        if not self._shell.endswith("/bash"):  # the analysis reads a line as bash does
            unruled.append("There is no bash on this machine, so it cannot be told what it runs.")
        return self._permission.of(
            parameters.command,
            folder,
            known,
            parameters.needs,
            session_key=context.session_key,
            only_look=context.as_guest,
            unruled=unruled,
            on_host=self._led_by_others,
        )

    def _led_by_others(self) -> list[str]:
        """Say for which repositories no rule speaks, because a command could write into what leads git there."""
        made = sorted(self._background.made_meanwhile(self._workspace.root))
        return [
            f"`{path.parent.relative_to(self._workspace.root)}` was made, or its configuration changed, while a "
            "command in the background could write there, so `git` may run what that command put there."
            for path in made
        ]

    def _ask(self, parameters: ExecParameters, folder: Path, verdict: Verdict, context: CallContext) -> Ask | None:
        command, limit = parameters.command, parameters.timeout_seconds
        where = (verdict.level, self._confinement.name)
        return self._permission.ask(
            bound=(
                *(self.name, context.session_key, command, str(folder), parameters.env, limit, parameters.background),
                *where,
            ),
            subject=command,
            missed=verdict.missed,
            facts=(*(() if verdict.missed else (self._permission.shown(verdict.level),)), *_facts(parameters)),
            risks=verdict.risks,
            rules=verdict.rules,
            alone=verdict.alone if verdict.missed else "",
        )

    async def sink(self, parameters: ExecParameters, context: CallContext) -> Sink:
        """See Tool; a line that somebody who may only look gives is none that acts."""
        folder = await asyncio.to_thread(self._workspace.folder, parameters.cwd)
        level = (await asyncio.to_thread(self._verdict, parameters, folder, context)).level
        return SINKS[level]

    async def covers(self, parameters: ExecParameters, context: CallContext, origin: Provenance) -> bool:
        """See Tool: its own output at this level, and among commands that rules of the operator allow that of each."""
        if origin.kind != "file" or origin.channel not in (_READ, _READ_BY_RULE):
            return False
        folder = await asyncio.to_thread(self._workspace.folder, parameters.cwd)
        verdict = await asyncio.to_thread(self._verdict, parameters, folder, context)
        same = origin.sender == _same(parameters, folder, verdict.level)
        return same or (verdict.by_operator and origin.channel == _READ_BY_RULE)

    async def run(self, parameters: ExecParameters, context: CallContext) -> ToolOutput:
        """Run the command; returns a line that says how it ended, then its stdout and stderr as they came."""
        opened = await asyncio.to_thread(self._workspace.opened, parameters.cwd)
        try:
            return await self._run(parameters, context, opened)
        finally:
            os.close(opened)

    async def _run(self, parameters: ExecParameters, context: CallContext, opened: int) -> ToolOutput:
        """Do the same. opened: the descriptor of the folder, so that its name is read once, before the decision."""
        folder = await asyncio.to_thread(self._workspace.folder, parameters.cwd)
        verdict = await asyncio.to_thread(self._verdict, parameters, folder, context)
        ask = self._ask(parameters, folder, verdict, context)
        if ask is not None and (context.decision is None or not context.decision.allows(ask)):
            raise ToolError("It was not executed: what was allowed is no longer what would run. Call it once more.")
        writes = None
        if parameters.background and verdict.level in ("work", "network"):
            writes = await asyncio.to_thread(Writes.of, self._workspace.root)
        launch = await self._launch(parameters, folder, verdict.level)
        before = await self._readable(parameters, folder, verdict)
        if verdict.level == "network":
            before = merged((Provenance("command", f"`{shorten(parameters.command, 40)}`"), *before))
        traced = self._traced(verdict.level, merged((*context.bears(), *before)), goes_on=parameters.background)
        make = partial(GatedProcess, launch, opened)
        try:
            if parameters.background:
                output = await self._in_background(make, verdict.level, parameters, context, traced, writes)
            else:
                output = await self._to_its_end(make, parameters.timeout_seconds, context, traced)
        except OSError as error:
            raise _not_started(error) from error
        if is_silent(output.text, below=2 if parameters.background and output.goes_on else 1):
            output = replace(output, origins=())
        else:
            after = await self._readable(parameters, folder, verdict)
            output = replace(output, origins=merged((*before, *after)))
        if output.text.startswith((f"[{ending(0)}]", "[running]")) or verdict.level == "host":
            return output
        more = "Whoever asks may have no more than that." if context.as_guest else _MORE[verdict.level]
        return replace(output, text=f"{output.text}\n[{_HAD[verdict.level]} {more}]")

    async def _launch(self, parameters: ExecParameters, folder: Path, level: Level) -> Launch:
        """Return the process to start. Raises ToolError."""
        argv, environment = (self._shell, "-c", parameters.command), {**self._environment, **parameters.env}
        try:
            return await asyncio.to_thread(
                self._confinement.launch, level, self._workspace.root, folder, environment, argv
            )
        except OSError as error:
            raise _not_started(error) from error

    def _traced(self, level: Level, origins: Origins, *, goes_on: bool) -> Traced:
        """Return what follows a command. What one that goes on will have read is not known yet."""
        clean = not (goes_on or origins)
        writes = level != "look" and (not clean or level == "work")
        return Traced(self._lineage, self._workspace, origins, writes=writes, alone=clean)

    async def _readable(self, parameters: ExecParameters, folder: Path, verdict: Verdict) -> Origins:
        """Return the origins of what a command could have read by now; on the host that is everything."""
        seen = await self._lineage.seen(self._workspace)
        if verdict.level == "host" or await self._lineage.unknown(self._workspace):
            how = _READ_BY_RULE if verdict.by_operator else _READ
            what, own = shorten(parameters.command, 40), _same(parameters, folder, verdict.level)
            seen = merged((*seen, Provenance("file", f"what `{what}` read", how, own)))
        return seen

    async def _in_background(
        self,
        make: Callable[..., GatedProcess],
        level: Level,
        parameters: ExecParameters,
        context: CallContext,
        traced: Traced,
        writes: Writes | None,
    ) -> ToolOutput:
        seconds = min(parameters.timeout_seconds or BACKGROUND_SECONDS, MOST_BACKGROUND_SECONDS)
        make = partial(make, has_input=True)
        one = await self._background.start(make, parameters.command, level, seconds, context, traced, writes)
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
        return _ended(one.ending, one.fresh())

    async def _to_its_end(
        self, make: Callable[..., GatedProcess], seconds: float | None, context: CallContext, traced: Traced
    ) -> ToolOutput:
        limit = min(seconds or self._timeout_seconds, self._timeout_seconds)
        overflow = self._background.overflow(context.session_key)
        output = overflow.spill(f"{context.turn_id}:{context.call_id}")
        updates = Paced(context.update)
        characters, mask = codecs.getincrementaldecoder("utf-8")("replace"), overflow.mask()

        def take(data: bytes) -> None:
            if head := output.add(mask.feed(data)):  # only the head of endless output is published
                updates.add(characters.decode(head))

        with closing(updates):
            async with traced, make(take) as process:
                started = await asyncio.to_thread(start_time, process.pid)
                await context.started(process.pid, started or "")
                process.open_gate()
                try:
                    async with asyncio.timeout(limit):
                        await process.wait()
                    await process.last_words(OUTPUT_GRACE_SECONDS)
                    status = await process.end()
                    how = ending(status, process.why)
                except TimeoutError:
                    status = await process.end(TIMEOUT_GRACE_SECONDS) or None
                    how = f"stopped after its time limit of {limit:g} s"
        output.add(mask.feed(b"", last=True))
        text = await asyncio.to_thread(output.text)
        return _ended(how, text or _NOTHING)


def _same(parameters: ExecParameters, folder: Path, level: Level) -> str:
    """Return a name for just this command, with all that decides what it runs and how far that reaches."""
    told = json.dumps([parameters.command, str(folder), parameters.env, level], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def is_silent(result: str, below: int = 1) -> bool:
    """Return whether a command has printed nothing. below: how many lines of the service stand above its output."""
    return result.split("\n", below)[below:] in ([_NOTHING], [_NOTHING_NEW])


def _ended(how: str, text: str) -> ToolOutput:
    """Return the result of a command. Any exit code is a result; a command that did not reach its end is an error."""
    return ToolOutput(text=f"[{how}]\n{text}", is_error=_RESULT.fullmatch(how) is None)


def _not_started(error: OSError) -> ToolError:
    return ToolError(f"The command could not be started: {error.strerror or error}.")


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of commands: a short list of variables, so that no secret of the service is in it.

    The encoding is UTF-8, because in another one a shell may read other words than were analysed.
    """
    kept = {name: environ[name] for name in _KEPT_VARIABLES if name in environ}
    if not all(_UNICODE.search(kept.get(name, "")) for name in ("LANG", "LC_ALL", "LC_CTYPE")):
        kept["LC_ALL"] = "C.UTF-8"
    return {"PATH": _DEFAULT_PATH, **kept, "TERM": "dumb", **SAFE_ENVIRONMENT}


def _facts(parameters: ExecParameters) -> list[str]:
    """Return sentences about what a person should know of a call besides its command."""
    facts = [] if parameters.cwd == "." else [f"It starts in {json.dumps(parameters.cwd)}."]
    if parameters.env:
        variables = " ".join(f"{name}={json.dumps(value)}" for name, value in parameters.env.items())
        facts.append(f"Its environment has {variables}.")
    if parameters.timeout_seconds:
        facts.append(f"It is ended after {parameters.timeout_seconds:g} s at the latest.")
    if parameters.background:
        facts.append("It runs on in the background until it ends, is killed, or the service stops.")
    return facts
