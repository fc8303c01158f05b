"""`hark agent -m TEXT`: one turn, and its answer on standard output while it is written."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

from pydantic_core import to_json

from agent.events import PARKED, WAITING, AgentEnd, AgentEvent, MessageEnd, MessageStart, MessageUpdate, Notice
from agent.message import well_formed
from bot.cli.local import FAILED, USAGE, carry_out, complain, service
from bot.cli.terminal.client import Client, Received, Rejected, Unreachable
from bot.cli.terminal.plain import LARGEST, PlainOutput, read_all
from bot.config.errors import ConfigError, Problem
from bot.config.model import Config
from bot.config.providers import model_problem
from bot.gateway.views import RunView
from channels.session_key import console_key

TIMED_OUT = 3
_ANSWERED = ("ok", "limit")
# Seconds that the end of a stream may take.
_LATE = 5.0
# Seconds without a byte after which standard input is taken for one that a program only inherited.
_PATIENCE = 5.0


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
    text = _text(message)

    async def work(config: Config) -> int:
        own = config if model is None else _with_model(config, model)
        async with service(own) as socket, contextlib.aclosing(Client(socket)) as client:
            answering = (await client.status()).model if model else ""
            if model and answering != ("offline/offline" if model == "offline" else model):
                complain(f"The service that runs answers with {answering}; stop it, or leave --model out.")
                return USAGE
            words = None if as_json else _Words()
            run = await _one_turn(client, text, session or console_key(uuid4().hex), timeout, words)
        return _report(run, words)

    return carry_out(config_path, work)


def _text(message: str | None) -> str:
    """The message to send, from the option, standard input or both. Raises ConfigError where it cannot be sent."""
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    if message is None and not is_piped:
        raise _usage("There is nothing to say: give -m TEXT, or something on standard input.")
    if message in (None, "-"):
        piped, message = read_all(), ""
    else:
        piped = read_all(patience=_PATIENCE) if is_piped else b""
    if piped is None:
        complain(f"Nothing came on standard input for {_PATIENCE:g} s; going on without it. `-m -` waits for it.")
    elif len(piped) > LARGEST:
        raise _usage(f"Standard input has more than {LARGEST:,} bytes, which no message may have.")
    parts = (message or "", (piped or b"").decode(errors="replace").rstrip())
    text = well_formed("\n\n".join(part for part in parts if part.strip()))  # an argument need not be UTF-8
    if not text.strip():
        raise _usage("There is nothing to say: the message is empty.")
    return text


def _with_model(config: Config, model: str) -> Config:
    problem = model_problem(model, config.providers)
    if problem is not None:
        raise _usage(f"--model: {problem}")
    return config.model_copy(update={"agent": config.agent.model_copy(update={"model": model})})


def _usage(text: str) -> ConfigError:
    """The error for a mistake on the command line, which ends with exit code 2."""
    return ConfigError((Problem("hark agent", None, (), text),))


async def _one_turn(
    client: Client, message: str, session: str, timeout: float | None, words: "_Words | None"
) -> RunView:
    """Say it, show the answer as it comes, and wait; Ctrl-C ends the run."""
    async with client.events(session) as told:
        submitting = asyncio.create_task(client.submit(message, session, uuid4().hex), name="submit")
        # in a task of its own: below an HTTP client a cancellation can be lost when an answer comes at the same moment
        following = asyncio.create_task(_follow(told, submitting, words), name="follow")
        try:
            await asyncio.wait([following], timeout=timeout)
            if following.done():
                following.result()  # raises what went wrong
            return await client.wait(await submitting, 0)
        except asyncio.CancelledError:
            with contextlib.suppress(Rejected, Unreachable):
                await client.abort(await submitting)  # also one that is just being accepted
            raise
        finally:
            following.cancel()
            await asyncio.wait([following], timeout=_LATE)


async def _follow(told: AsyncIterator[Received], submitting: asyncio.Task[str], words: "_Words | None") -> None:
    """Show the events of the submitted run until it has ended. Raises Rejected or Unreachable."""
    run_id = await asyncio.shield(submitting)
    async for _, event in told:
        if event.run.run_id == run_id:
            with contextlib.suppress(BrokenPipeError):  # the run goes on when nobody reads any more
                if words:
                    words.hear(event)
            if isinstance(event, AgentEnd) and event.is_last:
                return
            if isinstance(event, Notice) and event.kind == WAITING:
                complain("It waits for a decision; `hark approvals list` shows it.")
            if isinstance(event, Notice) and event.kind == PARKED:
                complain(event.detail)
    raise Unreachable("the service has gone away")


class _Words:
    """Writes the text of one run to standard output as soon as it is known, and none of it twice.

    `end` adds what the stream did not bring.
    """

    def __init__(self) -> None:
        self._said: list[str] = []
        self._open = ""
        self._output = PlainOutput(sys.stdout, "\n")

    def hear(self, event: AgentEvent) -> None:
        """Show what an event brings."""
        match event:
            case MessageStart():
                self._begin()
            case MessageUpdate(part="text") if event.offset == len(self._open):
                self._open += event.delta
                self._output.write(event.delta)
            case MessageEnd():
                if not event.cut:
                    if not event.text.startswith(self._open):  # some of it was passed over
                        self._begin()
                    self._output.write(event.text[len(self._open) :])
                self._begin()
                self._said.append(event.text.strip())

    def _begin(self) -> None:
        """Begin another answer of the model."""
        self._open = ""
        self._output.end()

    def end(self, text: str) -> None:
        """Write what is missing once the run has ended. text: all that the run has said."""
        said = "\n\n".join(filter(None, self._said))
        self._output.end()
        self._output.write(text[len(said) :] if text.startswith(said) else text)
        self._output.end()


def _report(run: RunView, words: _Words | None) -> int:
    """Print what is left to say; returns the exit code."""
    if words is None:
        print(to_json(run).decode())  # noqa: T201
    else:
        words.end(run.text if run.ended_at else "")
    if not run.ended_at:
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
