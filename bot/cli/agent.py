"""`hark agent -m TEXT`: one turn, and its answer on standard output while it is written."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

from pydantic_core import to_json

from agent.events import AgentEnd, AgentEvent, MessageEnd, MessageStart, MessageUpdate
from agent.text import well_formed
from bot.cli.local import FAILED, USAGE, carry_out, complain, service
from bot.cli.terminal.client import Client, Received, Rejected, Unreachable
from bot.cli.terminal.paper import Paper
from bot.cli.terminal.standard_input import LARGEST, whole
from bot.config.errors import ConfigError, Problem
from bot.config.model import Config, model_problem
from bot.gateway.views import RunView

TIMED_OUT = 3
_ANSWERED = ("ok", "limit")
_POLL = 60.0
"""Seconds of one wait for the run; there may be many."""
_LATE = 5.0
"""Seconds that the last words of a run may take to arrive; they are known without."""
_PATIENCE = 5.0
"""Seconds without a byte after which standard input is taken for one that a program only inherited."""


class _NothingToSay(Exception):
    """The text says what is wrong with the message."""


def main(
    config_path: Path | None,
    message: str | None,
    session: str | None,
    model: str | None,
    as_json: bool,
    timeout: float | None,
) -> int:
    """One turn in a session (a name or a key; None for one of its own), waiting so many seconds at most.

    message: None or "-" for what stands on standard input; behind another text that is appended. model: which one must
    answer. Returns the exit code: 0 answered, 1 failed, 2 usage, 3 timed out; the run goes on then. Raises ConfigError.
    """
    try:
        text = _text(message)
    except _NothingToSay as error:
        complain(str(error))
        return USAGE

    async def work(config: Config) -> int:
        own = config if model is None else _with_model(config, model)
        async with service(own) as socket, contextlib.aclosing(Client(socket)) as client:
            answering = (await client.status()).model if model else ""
            if model and answering != ("offline/offline" if model == "offline" else model):
                complain(f"The service that runs answers with {answering}; stop it, or leave --model out.")
                return USAGE
            words = None if as_json else _Words()
            run = await _one_turn(client, text, session or f"cli-{uuid4().hex}", timeout, words)
        return _report(run, words)

    return carry_out(config_path, work)


def _text(message: str | None) -> str:
    """What is to be said. Raises _NothingToSay."""
    piped: bytes | None = b""
    if message not in (None, "-"):
        if sys.stdin is not None and not sys.stdin.isatty():
            piped = whole(patience=_PATIENCE)
    elif message is None and (sys.stdin is None or sys.stdin.isatty()):
        raise _NothingToSay("There is nothing to say: give -m TEXT, or something on standard input.")
    else:
        piped, message = whole(), ""
    if piped is None:
        complain(f"Nothing came on standard input for {_PATIENCE:g} s; going on without it. `-m -` waits for it.")
    elif len(piped) > LARGEST:
        raise _NothingToSay(f"Standard input has more than {LARGEST:,} bytes, which no message may have.")
    parts = (message or "", (piped or b"").decode(errors="replace").rstrip())
    text = well_formed("\n\n".join(part for part in parts if part.strip()))  # an argument need not be UTF-8
    if not text.strip():
        raise _NothingToSay("There is nothing to say: the message is empty.")
    return text


def _with_model(config: Config, model: str) -> Config:
    problem = model_problem(model, config.providers)
    if problem is not None:
        raise ConfigError((Problem("--model", None, (), problem),))
    return config.model_copy(update={"agent": config.agent.model_copy(update={"model": model})})


async def _one_turn(
    client: Client, message: str, session: str, timeout: float | None, words: "_Words | None"
) -> RunView:
    """Say it, show the answer as it comes, and wait; Ctrl-C ends the run."""
    async with client.events(session) as told:
        submitting = asyncio.create_task(client.submit(message, session, uuid4().hex), name="submit")
        following = asyncio.create_task(_follow(told, submitting, words), name="follow")
        # in a task of its own: below an HTTP client a cancellation can be lost when an answer comes at the same moment
        waiting = asyncio.create_task(_wait(client, submitting, timeout), name="wait")
        try:
            run = await asyncio.shield(waiting)
            if run.ended:
                await asyncio.wait([following], timeout=_LATE)
            return run
        except asyncio.CancelledError:
            with contextlib.suppress(Rejected, Unreachable):
                await client.abort(await submitting)  # also one that is just being accepted
            raise
        finally:
            following.cancel()
            waiting.cancel()
            await asyncio.wait([following, waiting], timeout=_LATE)


async def _follow(told: AsyncIterator[Received], submitting: asyncio.Task[str], words: "_Words | None") -> None:
    with contextlib.suppress(Rejected, Unreachable, BrokenPipeError):  # the run goes on when nobody reads any more
        run_id = await asyncio.shield(submitting)
        async for _, event in told:
            if words is None or (event.run.run_id == run_id and words.hear(event)):
                return


async def _wait(client: Client, submitting: asyncio.Task[str], timeout: float | None) -> RunView:
    run_id = await asyncio.shield(submitting)
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        seconds = _POLL if deadline is None else min(_POLL, max(0.0, deadline - time.monotonic()))
        run = await client.wait(run_id, seconds)
        if run.ended or (deadline is not None and time.monotonic() >= deadline):
            return run


class _Words:
    """The words of one run on standard output, each as soon as it is known, and none of them twice.

    What the stream did not bring is in the run itself.
    """

    def __init__(self) -> None:
        self._said: list[str] = []
        self._open: str | None = None
        self._paper = Paper(sys.stdout, "\n")

    def hear(self, event: AgentEvent) -> bool:
        """Show what an event brings; True when it is the last one."""
        match event:
            case MessageStart():
                if self._open:
                    complain("\n(The answer broke off, and goes on.)")
                self._begin()
            case MessageUpdate(part="text") if self._open is not None:
                self._open += event.delta
                self._paper.write(event.delta)
            case MessageEnd():
                if not event.cut:
                    if not event.text.startswith(self._open or ""):  # some of it was passed over
                        self._begin()
                    self._paper.write(event.text[len(self._open or "") :])
                    self._paper.end()
                    self._open = None
                self._said.append(event.text.strip())
            case AgentEnd():
                return event.is_last
            case _:
                pass
        return False

    def end(self, text: str) -> None:
        """The run is over, or is not waited for any more; text: all that it has said."""
        said = "\n\n".join(filter(None, self._said))
        rest = text[len(said) :] if text.startswith(said) else text
        self._begin()
        self._paper.write(rest)
        self._paper.end()

    def _begin(self) -> None:
        """What comes next is another answer of the model."""
        self._open = ""
        self._paper.end()


def _report(run: RunView, words: _Words | None) -> int:
    """Print what is left to say; returns the exit code."""
    if words is None:
        print(to_json(run).decode())  # noqa: T201
    else:
        words.end(run.text)
    if not run.ended:
        complain(f"Not finished in time; run {run.run_id} goes on.")
        return TIMED_OUT
    if run.status in _ANSWERED:
        return 0
    if run.status == "aborted":
        complain("The run was stopped.")
    elif run.error is not None:
        for cause in (run.error["message"], run.error.get("detail", "")):
            if cause not in run.text:
                complain(cause)
    return FAILED
