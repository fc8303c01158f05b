"""The terminal without a screen: a line in is a message, answers come out as they were written, without escape codes.

Standard input may be a pipe, a file or a terminal; it is read line by line, or as a whole.

A line waits for the answer to the one before it, or for what that is asked about, so a script reads answers in the
order of its questions, can decide, and loses none at the end of its input.
"""

import asyncio
import contextlib
import select
import threading
from collections.abc import AsyncIterator, Sequence
from typing import TextIO

from bot.cli.terminal import slash
from bot.cli.terminal.conversation import Conversation
from bot.cli.terminal.view import Piece, clean

# Bytes that `read_all` reads at the most; no message may have as many.
LARGEST = 1_000_000


async def read_lines(descriptor: int = 0) -> AsyncIterator[str]:
    """Yield the lines of standard input without their ends, until end-of-file.

    A thread reads, because not everything that can be standard input can be watched by the event loop. It is not
    waited for: nothing can wake a read that waits for a person.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            with (
                contextlib.suppress(OSError),  # the terminal is gone
                # not sys.stdin: a thread that holds its lock would end the process with an error of the interpreter
                open(descriptor, encoding="utf-8", errors="replace", closefd=False) as source,
            ):
                for line in source:
                    loop.call_soon_threadsafe(queue.put_nowait, line.removesuffix("\n"))
            loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, name="standard-input", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def read_all(descriptor: int = 0, patience: float | None = None) -> bytes | None:
    """Read standard input to its end, at most LARGEST + 1 bytes; None when nothing comes for `patience` seconds.

    Blocks. Once something has come, the end is waited for, however long it takes.
    """
    if not select.select([descriptor], [], [], patience)[0]:
        return None
    try:
        with open(descriptor, "rb", closefd=False) as source:
            return source.read(LARGEST + 1)
    except OSError:  # the terminal is gone
        return b""


async def talk(conversation: Conversation, lines: AsyncIterator[str], out: TextIO) -> None:
    """Say each line as a message and write the answers to `out`, until the last line is answered.

    When this is cancelled, as by Ctrl-C, the run that it waits for is aborted. Raises Rejected or Unreachable.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(conversation.listen(PlainOutput(out).show), name="plain-listen")
            await _say(conversation, lines)
            listening.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _say(conversation: Conversation, lines: AsyncIterator[str]) -> None:
    asking: list[str] = []  # the runs that wait for a person
    async for line in lines:
        if line.strip().lower() in slash.LEAVE:
            return
        if line.strip():
            saying = asyncio.create_task(conversation.say(line), name="plain-say")
            try:
                asking.append(await asyncio.shield(saying))
                asking = [one for one in asking if not await conversation.answered(one, or_asks=True)]
            except asyncio.CancelledError:
                await conversation.abort(await saying)  # also one that is just being accepted
                raise
    for run_id in asking:
        try:
            await conversation.answered(run_id)
        except asyncio.CancelledError:
            await conversation.abort(run_id)
            raise


class PlainOutput:
    """Writes answers one after the other, as the model wrote them.

    White space is held back until something follows, so an answer neither begins nor ends with an empty line.
    gap: is written between two answers.
    """

    def __init__(self, out: TextIO, gap: str = "") -> None:
        self._out = out
        self._gap = gap
        self._away = False
        self._blank = ""
        self._begun = False
        self._any = False

    def show(self, pieces: Sequence[Piece]) -> None:
        """Write each piece as an answer of its own, in the words of the model or the service."""
        for piece in pieces:
            if piece.said and piece.away and not self._away:
                self._away = True
                self._out.write("While you were away:\n")
            self.write(piece.said)
            self.end()

    def write(self, text: str) -> None:
        """Write more of an answer, or the beginning of one."""
        waiting = self._blank + clean(text)
        shown = waiting.rstrip()
        self._blank = waiting[len(shown) :]
        if shown:
            if not self._begun:
                shown = (self._gap if self._any else "") + shown.lstrip("\n")
            self._begun = self._any = True
            self._out.write(shown)
            self._out.flush()

    def end(self) -> None:
        """End the answer: what comes next belongs to another one."""
        if self._begun:
            self._out.write("\n")
            self._out.flush()
        self._blank, self._begun = "", False
