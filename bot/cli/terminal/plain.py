"""The terminal without a screen: a line in is a message, what is said comes out as it was written, no escape codes.

A line waits for the answer to the one before it, so a script reads answers in the order of its questions and loses
none at the end of its input.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import TextIO

from bot.cli.terminal import slash
from bot.cli.terminal.client import Client
from bot.cli.terminal.conversation import Conversation
from bot.cli.terminal.safe_text import clean
from channels.console.adapter import ConsoleBlock

_LATE = 10.0
"""Seconds that the words of a run that has ended may take to arrive; after that they come next time."""
_POLL = 30.0
"""Seconds of one wait for a run; there may be many."""
_SOURCE = re.compile(r"(?:turn:)?(?P<whose>[^:]+)(?::s\d+)?")


class PlainTerminal:
    """lines: what is said to the service, one message each; out: where its words go."""

    def __init__(self, client: Client, lines: AsyncIterator[str], out: TextIO) -> None:
        self._client = client
        self._conversation = Conversation(client)
        self._lines = lines
        self._paper = _Paper(out, time.time_ns() // 1_000_000)
        self._heard: Counter[str] = Counter()
        self._more = asyncio.Condition()
        self._run_id: str | None = None
        self._pressed: str | None = None
        self._aborting: asyncio.Task[bool] | None = None

    async def run(self) -> None:
        """Until the input ends and its last line is answered. Raises Rejected or Unreachable."""
        listening = asyncio.create_task(self._conversation.listen(), name="plain-listen")
        showing = asyncio.create_task(self._show(), name="plain-show")
        talking = asyncio.create_task(self._talk(), name="plain-talk")
        tasks = (listening, showing, talking)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
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
                await self._exchange(line)

    async def _exchange(self, line: str) -> None:
        """Say a line and wait until the answer has been written."""
        self._heard.clear()
        run_id = self._run_id = await self._conversation.say(line)
        run = await self._client.wait(run_id, _POLL)
        while not run.ended:
            run = await self._client.wait(run_id, _POLL)
        expected = _visible(run.text)
        try:
            async with self._more, asyncio.timeout(_LATE):
                # a command's reply names the command, not its run
                await self._more.wait_for(lambda: self._heard[run_id] + self._heard["cmd"] >= expected)
        except TimeoutError:
            pass
        self._run_id = None
        self._paper.end()

    async def _show(self) -> None:
        while True:
            heard = await self._conversation.heard.get()
            if isinstance(heard, ConsoleBlock):
                self._paper.write(heard)
                async with self._more:
                    self._heard[_whose(heard.source)] += _visible(heard.said)
                    self._more.notify_all()


class _Paper:
    """What was written so far: answers begin on a line of their own. opened_at: see `View`."""

    def __init__(self, out: TextIO, opened_at: int) -> None:
        self._out = out
        self._opened_at = opened_at
        self._away = False
        self._answer = ""
        self._blank = ""

    def write(self, block: ConsoleBlock) -> None:
        """Write the model's own words where there are some: blocks of one answer join without a seam."""
        found = _SOURCE.match(block.source)
        answer = found[0] if found else block.source
        if answer != self._answer:
            self.end()
        if block.planned_at < self._opened_at and not self._away:
            self._away = True
            self._out.write("While you were away:\n")
        text = clean(block.said or block.text)
        if answer != self._answer:
            text = text.lstrip("\n")
        shown = text.rstrip()
        if shown:
            self._out.write(self._blank + shown)
            self._answer, self._blank = answer, text[len(shown) :]
            self._out.flush()

    def end(self) -> None:
        """What comes next is another answer."""
        if self._answer:
            self._out.write("\n")
            self._out.flush()
        self._answer, self._blank = "", ""


def _whose(source: str) -> str:
    """The turn's id of a block that a turn has made; "cmd" for a command's."""
    found = _SOURCE.match(source)
    return found["whose"] if found else ""


def _visible(text: str) -> int:
    """How many characters of a text can be seen: how white space is joined does not matter."""
    return len("".join(text.split()))
