"""The terminal without a screen: a line in is a message, what is said comes out as it was written, no escape codes.

A line waits for the answer to the one before it, so a script reads answers in the order of its questions and loses
none at the end of its input.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TextIO

from bot.cli.terminal import slash
from bot.cli.terminal.conversation import Conversation
from bot.cli.terminal.paper import Paper
from bot.cli.terminal.view import Piece


class PlainTerminal:
    """lines: what is said to the service, one message each; out: where its words go."""

    def __init__(self, conversation: Conversation, lines: AsyncIterator[str], out: TextIO) -> None:
        self._conversation = conversation
        self._lines = lines
        self._out = out
        self._paper = Paper(out)
        self._answer = ""
        self._away = False
        self._run_id: str | None = None
        self._pressed: str | None = None
        self._aborting: asyncio.Task[bool] | None = None

    async def run(self) -> None:
        """Until the input ends and its last line is answered. Raises Rejected or Unreachable."""
        try:
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._conversation.listen(self._show), name="plain-listen")
                await self._talk()
                listening.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            self._paper.end()

    def interrupt(self) -> bool:
        """Ctrl-C: ends what runs; True when nothing does, or when it was pressed for that before: then leave."""
        if self._run_id is None or self._run_id == self._pressed:
            return True
        self._pressed = self._run_id
        self._aborting = asyncio.create_task(self._conversation.abort(self._run_id))
        return False

    async def _talk(self) -> None:
        async for line in self._lines:
            if line.strip().lower() in slash.LEAVE:
                return
            if line.strip():
                self._run_id = await self._conversation.say(line)
                await self._conversation.answered(self._run_id)
                self._run_id = None
                self._paper.end()

    def _show(self, pieces: Sequence[Piece]) -> None:
        """Write words of the model or of the service as they are: blocks of one answer join without a seam."""
        for piece in pieces:
            if not piece.of:
                continue
            if piece.of != self._answer:
                self._answer = piece.of
                self._paper.end()
            if piece.away and not self._away:
                self._away = True
                self._out.write("While you were away:\n")
            self._paper.write(piece.said)
