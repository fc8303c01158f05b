"""The terminal without a screen: a line in is a message, what is said comes out as it was written, no escape codes.

A line waits for the answer to the one before it, or for what that is asked about, so a script reads answers in the
order of its questions, can decide, and loses none at the end of its input.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TextIO

from bot.cli.terminal import slash
from bot.cli.terminal.conversation import Conversation
from bot.cli.terminal.paper import Paper


async def talk(conversation: Conversation, lines: AsyncIterator[str], out: TextIO) -> None:
    """Until the input ends and its last line is answered. Raises Rejected or Unreachable.

    lines: what is said to the service, one message each; out: where its words go. When it is cancelled, as by Ctrl-C,
    the run that it waits for ends as well.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(conversation.listen(Paper(out).show), name="plain-listen")
            await _say(conversation, lines)
            listening.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _say(conversation: Conversation, lines: AsyncIterator[str]) -> None:
    asking: list[str] = []  # of what was said the runs that wait for a person
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
