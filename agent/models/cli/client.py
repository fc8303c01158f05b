"""The client of a program of the command line: starts it in the sandbox for each call, and reads what it prints.

The program sees the system, its own file, and one folder of its own with its login and sessions, the only one that it
may change; it has no key of Hark in its environment. It is asked only where a sandbox holds and its tools are proved to
be off, and only about what owners wrote. Everything that it started ends with the call, and with this process.
"""

import asyncio
import json
import os
import re
import shutil
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.errors import ErrorKind, ModelError
from agent.models import failures
from agent.models.base import Alive, Answer, CommandLine, ModelClient, ModelRequest, ModelSpec, StreamPart
from agent.models.cli import conversation
from agent.models.cli.conversation import Prompt, Session
from agent.models.cli.programs import PROGRAMS, Call
from agent.models.cli.proof import offered
from agent.models.cli.readers import Reader, failed, used
from agent.models.sdk import Measure
from agent.sandbox.base import Launch, View
from agent.sandbox.proof import choose
from agent.tools.process import OUTPUT_GRACE_SECONDS, GatedProcess, at_most, ending

# Seconds in which a program may write its session after its answer, and in which a proof of its tools must come.
_AFTERWARDS, _PROOF = 5.0, 20.0
# A program that prints nothing while its model works gives a sign of life after so many seconds of silence, so often.
_PAUSE, _PAUSES = 10.0, 30
# How many sessions are remembered.
_SESSIONS = 500
# The most bytes of a line that is no JSON that are kept to say what went wrong, and how many such lines are.
_NOISE, _NOISES = 400, 5
# What an id of a session looks like, which becomes a word of a command line.
_ID = re.compile("[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_PATH = "/usr/local/bin:/usr/bin:/bin"


class CliClient(ModelClient):
    """A client of one model behind a program."""

    limits = "It is a program: it answers owners alone, and calls no tool."

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        assert spec.command is not None
        self._model, self._command = spec.model, spec.command
        self._program = PROGRAMS[Path(spec.command.program).name]
        # The file whose tools were proved to be off: its path, size and time of change.
        self._proved: tuple[Path, int, int] | None = None
        # What the sessions have seen that this process knows to be whole, by their ids.
        self._whole: dict[str, str] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        if not request.for_owners:
            raise ModelError(ErrorKind.OWNERS_ONLY, "it answers what owners wrote, and nothing else")
        path = await asyncio.to_thread(self._found)
        await self._prove(path)
        if prompt := self._going_on(request):
            said = False
            try:
                async with aclosing(self._ask(path, request, prompt)) as parts:
                    async for part in parts:
                        said = said or not isinstance(part, Alive)
                        yield part
                return
            except ModelError as error:  # the session may be gone
                if said or error.kind is not ErrorKind.UNKNOWN:
                    raise
        async with aclosing(self._ask(path, request, conversation.whole(request))) as parts:
            async for part in parts:
                yield part

    def _going_on(self, request: ModelRequest) -> Prompt | None:
        """Return what is new for the session of the last answer; None where a new one has to begin.

        A program that writes on in the same session may have seen more there than was stored: a call that broke off, or
        another conversation with the same beginning. Such a session is used once after each answer that came here.
        """
        prompt = conversation.going_on(request, self.name)
        if prompt is None or prompt.session is None or self._program.forks:
            return prompt
        return prompt if self._whole.pop(prompt.session.session_id, "") == prompt.session.digest else None

    async def _ask(self, path: Path, request: ModelRequest, prompt: Prompt) -> AsyncGenerator[StreamPart, None]:
        """Run the program once; yields what it says, and the answer at last."""
        session = prompt.session.session_id if prompt.session else ""
        call = Call(model=self._model, thinking=request.thinking, session_id=session)
        reader, measure, noise = self._program.reader(), Measure(), deque[str](maxlen=_NOISES)
        async with self._running(path, call, prompt.text) as (process, chunks):
            async for line in _lines(chunks, measure, _PAUSE if self._program.is_quiet else None):
                event = _event(line)
                if event is None and line:
                    noise.append(line[:_NOISE].decode(errors="replace"))
                for part in reader.feed(event) if event else ():
                    measure.add(part)
                    yield part
                yield Alive()
                if reader.ended or measure.is_over:
                    break
            if reader.ended:
                await at_most(_AFTERWARDS, process.wait())
            elif measure.is_over:
                reader.stop = "max_output"
            else:
                raise self._no_answer(ending(await process.end(), process.why), reader, noise)
        yield self._answer(request, reader)

    def _answer(self, request: ModelRequest, reader: Reader) -> Answer:
        if not (reader.ended and _ID.fullmatch(reader.session_id)):
            return reader.answer(self.name)
        session = Session(reader.session_id, conversation.digest(request, request.messages))
        if not self._program.forks:
            self._whole[session.session_id] = session.digest
            while len(self._whole) > _SESSIONS:
                self._whole.pop(next(iter(self._whole)))
        return reader.answer(self.name, session.part())

    def _no_answer(self, how: str, reader: Reader, noise: Iterable[str]) -> ModelError:
        """Return the error for a program that ended without an answer. how: it ended."""
        words = " ".join((*noise, reader.trouble)).strip()
        error = failed(words)
        detail = failures.masked(f"`{self._program.name}` ended ({how}) without an answer: {words or 'no words'}", ())
        return ModelError(error.kind, detail, error.retry_after)

    @asynccontextmanager
    async def _running(
        self, path: Path, call: Call, given: str
    ) -> AsyncIterator[tuple[GatedProcess, "asyncio.Queue[bytes | None]"]]:
        """Run the program in the sandbox; yields it and what it prints, None at the end. Raises ModelError."""
        chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        try:
            launch = await asyncio.to_thread(self._launch, path, call)
            process = GatedProcess(launch, self._command.home, chunks.put_nowait, given=given.encode(errors="replace"))
        except OSError as error:
            raise ModelError(ErrorKind.UNSAFE, f"`{path}` cannot be started in the sandbox: {error}") from None
        async with process:
            process.open_gate()
            over = asyncio.create_task(_tell_end(process, chunks))
            try:
                yield process, chunks
            except ModelError as error:
                if error.kind is not ErrorKind.AUTH:
                    raise
                login = f"{self._program.home_variable}={self._command.home} {self._program.login}"
                raise ModelError(error.kind, f"{error.detail}; to log in: {login}") from None
            finally:
                over.cancel()

    def _found(self) -> Path:
        """Return the file of the program. Raises ModelError where it is not installed."""
        found = shutil.which(self._command.program)
        if found is None:
            raise ModelError(ErrorKind.MODEL_NOT_FOUND, f"`{self._command.program}` is not installed, or not on PATH")
        return Path(found).resolve()

    def _launch(self, path: Path, call: Call) -> Launch:
        """Return the process to start. Blocking. Raises ModelError or OSError."""
        command = self._command
        proved = choose(command.sandbox)
        if proved.sandbox is None or "network" not in proved.sandbox.levels:
            held = f"{proved.sandbox.name} holds only commands that look" if proved.sandbox else "none holds here"
            raise ModelError(
                ErrorKind.UNSAFE,
                f"`{self._program.name}` runs in a sandbox alone, and {held}: {proved.why}",
            )
        _prepare(command, self._program.settings)
        view = View(
            level="network",
            room=command.home,
            folder=command.home,
            environment={
                "PATH": os.environ.get("PATH", _PATH),
                "LC_ALL": "C.UTF-8",
                "TERM": "dumb",
                "NO_COLOR": "1",
                self._program.home_variable: str(command.home),
                **self._program.variables(call, command.home),
            },
            temporary=Path(tempfile.mkdtemp(dir=command.temporary)),
            shown=_shown(path),
        )
        launch = proved.sandbox.launch(view, (str(path), *self._program.words(call)))
        return replace(launch, temporary=view.temporary, leashed=True)

    async def _prove(self, path: Path) -> None:
        """Prove that the program offers its model no tools, once for each file. Raises ModelError."""
        if self._program.harmless is None:  # it lists its tools at each call
            return
        stat = await asyncio.to_thread(path.stat)
        file = path, stat.st_size, stat.st_mtime_ns
        if file == self._proved:
            return

        async def start(address: str) -> None:
            call = Call(model=self._model, thinking="auto", instead=address)
            async with self._running(path, call, "Say OK.") as (process, _):
                await at_most(_PROOF, process.wait())

        tools = await offered(start)
        if tools is None:
            raise used("could not be seen with its tools", "it asked no model in the test before the first call")
        if more := tools - self._program.harmless:
            raise used("offers its model", ", ".join(sorted(more)))
        self._proved = file


def _prepare(command: CommandLine, settings: tuple[tuple[str, str], ...]) -> None:
    """Make the folders and the files of settings. Raises OSError."""
    for folder in (command.home, command.temporary):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in settings:
        path = command.home / name
        with suppress(OSError):
            if path.read_text() == content:
                continue
        handle, made = tempfile.mkstemp(dir=command.home)
        with open(handle, "w") as file:
            file.write(content)
        os.replace(made, path)


def _shown(path: Path) -> tuple[Path, ...]:
    """Return what of the machine the program needs besides the system: its file, or the packages that it is one of."""
    at = next((index for index, name in enumerate(path.parts) if name == "node_modules"), None)
    return (path if at is None else Path(*path.parts[: at + 1]),)


async def _tell_end(process: GatedProcess, chunks: "asyncio.Queue[bytes | None]") -> None:
    await process.wait()
    await process.last_words(OUTPUT_GRACE_SECONDS)
    chunks.put_nowait(None)


async def _lines(chunks: "asyncio.Queue[bytes | None]", measure: Measure, pause: float | None) -> AsyncIterator[bytes]:
    """Yield the lines that are printed, until the end or until they are too much.

    pause: after so many seconds without a word an empty line is yielded; None: never. Raises ModelError when there have
    been too many of these.
    """
    rest, pauses = b"", 0
    while True:
        try:
            async with asyncio.timeout(pause):
                chunk = await chunks.get()
        except TimeoutError:
            pauses += 1
            if pauses > _PAUSES:
                raise ModelError(ErrorKind.TIMEOUT, f"it printed nothing for {_PAUSE * _PAUSES:g} s") from None
            yield b""
            continue
        pauses = 0
        if chunk is None:
            break
        measure.add_bytes(len(chunk), anew=b"\n" in chunk)
        if measure.is_over:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest


def _event(line: bytes) -> dict[str, Any] | None:
    """Return the event of a line; None for a line that is none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
