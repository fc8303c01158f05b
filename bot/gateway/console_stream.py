"""`GET /v1/console`: what one terminal shows, as one stream: blocks of the console channel and events of its session.

It begins with the last exchange. A terminal that was away finds the blocks it missed: they wait in the ledger until
one is open.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence

from pydantic_core import to_json

from bot.bus import EventBus, Subscription, Told
from bot.gateway.closing import Closing
from bot.gateway.sse import HELLO, PING, PING_SECONDS, frame
from bot.persistence.values import Exchange
from bot.store import codec
from bot.store.reads import Reads
from channels.console.adapter import ConsoleBlock, ConsoleChannel, ConsoleQuestion
from channels.session_key import console_key

TAKE_SECONDS = 10.0
"""How long a terminal that shows nothing (stopped, or gone without a word) may hold up a block."""


class _Terminal:
    """One attached terminal; implements `channels.console.adapter.AttachedTerminal`.

    items: blocks, and events that came together; None at the end. One at a time: the bus and the ledger hold the rest.
    """

    def __init__(self) -> None:
        self.items: asyncio.Queue[ConsoleBlock | Sequence[Told] | None] = asyncio.Queue(maxsize=1)
        self._shown: dict[int, asyncio.Future[bool]] = {}
        self._gone = False

    async def show(self, block: ConsoleBlock) -> bool:
        if self._gone:
            return False
        shown: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._shown[block.delivery_id] = shown
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                await self.items.put(block)
                return await shown
        except TimeoutError:
            return False
        finally:
            del self._shown[block.delivery_id]

    def taken(self, block: ConsoleBlock) -> None:
        """The block has been handed to the terminal's connection."""
        shown = self._shown.get(block.delivery_id)
        if shown is not None and not shown.done():
            shown.set_result(True)

    def leave(self) -> None:
        """Nothing is shown any more."""
        self._gone = True
        for shown in self._shown.values():
            if not shown.done():
                shown.set_result(False)
        while not self.items.empty():
            self.items.get_nowait()  # lets those go on that wait to put something

    async def follow(self, subscription: Subscription) -> None:
        """Hand events over until they end, or until some had to be dropped: then the terminal comes back anew."""
        while events := await subscription.batch():
            await self.items.put(events)
        await self.items.put(None)


async def chunks(
    console: ConsoleChannel, reads: Reads, bus: EventBus, closing: Closing, ping_seconds: float = PING_SECONDS
) -> AsyncGenerator[bytes, None]:
    """Frames for one terminal: `block` and `question` with the fields of ConsoleBlock and ConsoleQuestion, and the
    events of the console's session. A question stands before the first event of its run."""
    terminal = _Terminal()
    subscription = bus.subscribe(console_key())
    following = asyncio.create_task(terminal.follow(subscription), name="console-events")
    detach = console.attach(terminal)
    try:
        yield HELLO
        if last := await reads.last_exchange(console_key()):
            yield _question(last, last.answer)
        while True:
            try:
                async with closing.within(ping_seconds):
                    item = await terminal.items.get()
            except TimeoutError:
                if closing.begun:
                    return
                yield PING
                continue
            if item is None:
                return
            if isinstance(item, ConsoleBlock):
                yield frame("block", to_json(item).decode())
                terminal.taken(item)
            else:
                for told in item:
                    if not isinstance(told, range):
                        yield frame(told.type, codec.dump_event(told))
                        continue
                    for event in await reads.events_after(told.start - 1, told.stop - 1, console_key(), None, 1000):
                        run = json.loads(event.body)["run"]["run_id"]
                        if event.type == "agent_start" and (asked := await reads.exchange(run)):
                            yield _question(asked)
                        yield frame(event.type, event.body, event.seq)
    finally:
        detach()
        terminal.leave()
        bus.unsubscribe(subscription)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _question(exchange: Exchange, answer: str | None = None) -> bytes:
    key = exchange.event_key.removeprefix("h:")
    return frame("question", to_json(ConsoleQuestion(key=key, text=exchange.question, answer=answer)).decode())
