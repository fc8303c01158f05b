"""`hark agent -m TEXT`: one turn, and its answer on standard output."""

import asyncio
import contextlib
import sys
import time
from pathlib import Path
from uuid import uuid4

from agent.text import well_formed
from bot.cli.local import FAILED, USAGE, carry_out, service
from bot.cli.terminal.client import Client, Rejected, Run, Unreachable
from bot.cli.terminal.safe_text import clean
from bot.config.model import Config

TIMED_OUT = 3
SESSION = "cli"
_ANSWERED = ("ok", "limit")
_POLL = 60.0
"""Seconds of one wait for the run; there may be many."""


def main(config_path: Path | None, message: str, session: str | None, as_json: bool, timeout: float | None) -> int:
    """One turn in a session (a name or a key), waiting so many seconds at most. Returns the exit code:
    0 answered, 1 failed, 2 usage, 3 timed out; the run goes on then. Raises ConfigError."""
    message = well_formed(message)  # an argument need not be UTF-8
    if not message.strip():
        print("There is nothing to say: -m is empty.", file=sys.stderr)  # noqa: T201
        return USAGE

    async def work(config: Config) -> int:
        async with service(config) as socket:
            client = Client(socket)
            try:
                run = await _one_turn(client, message, session or SESSION, timeout)
            finally:
                await client.close()
        return _report(run, as_json)

    return carry_out(config_path, work)


async def _one_turn(client: Client, message: str, session: str, timeout: float | None) -> Run:
    """Say it and wait; Ctrl-C ends the run."""
    run_id = await client.submit(message, session, uuid4().hex)
    try:
        return await _wait(client, run_id, timeout)
    except asyncio.CancelledError:
        with contextlib.suppress(Rejected, Unreachable):
            await client.abort(run_id)
        raise


async def _wait(client: Client, run_id: str, timeout: float | None) -> Run:
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        seconds = _POLL if deadline is None else min(_POLL, max(0.0, deadline - time.monotonic()))
        run = await client.wait(run_id, seconds)
        if run.ended or (deadline is not None and time.monotonic() >= deadline):
            return run


def _report(run: Run, as_json: bool) -> int:
    """Print what came of it; returns the exit code."""
    if as_json:
        print(run.document)  # noqa: T201
    else:
        _print_text(run.text)
    if not run.ended:
        _say(f"Not finished in time; run {run.run_id} goes on.")
        return TIMED_OUT
    if run.status in _ANSWERED:
        return 0
    if run.status == "aborted":
        _say("The run was stopped.")
    elif run.error is not None:
        for words in (run.error.message, run.error.detail):
            if words not in run.text:
                _say(words)
    return FAILED


def _print_text(text: str) -> None:
    if not text.strip():
        return
    if not sys.stdout.isatty():
        print(clean(text).rstrip())  # noqa: T201
        return
    import shutil

    from bot.cli.terminal.screen import Screen, colours
    from bot.cli.terminal.view import Piece, Tone

    width = shutil.get_terminal_size().columns
    print(Screen(colours()).piece(Piece(Tone.SAID, text), width).rstrip("\n"))  # noqa: T201


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201
