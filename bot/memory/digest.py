"""Tells people of memories that wait for them: owners of those of the workspace and of groups, others of their own."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from bot.clock import Clock
from bot.memory import words
from bot.memory.filing import Filing
from bot.outbox import Outbox
from bot.persistence.deliveries import OwnerNotice
from bot.persistence.errors import StoreUnavailable
from bot.store.memories import Waiting
from channels.message import Place
from channels.outgoing import Planned
from channels.sources import sentence

# The most memories that a digest shows, and seconds between two looks at most.
_SHOWN, _PAUSE = 10, 60.0


@dataclass(frozen=True, slots=True)
class Digest:
    """Makes the digests, and brings files up to date that a crash or a full disk has left behind."""

    filing: Filing
    outbox: Outbox
    clock: Clock
    every: Callable[[], timedelta]

    async def serve(self) -> None:
        """Look again and again while something waits."""
        store = self.filing.store
        while True:
            store.waits.clear()
            seconds = self.every().total_seconds()
            with suppress(StoreUnavailable):  # the store has said so itself
                if not await store.are_open():
                    await store.waits.wait()
                await self.filing.settle()
                if await store.digest(int(seconds * 1000), self._notice):
                    await self.outbox.serve_open()
            await self.clock.sleep(min(_PAUSE, max(seconds / 4, 1)))

    def _notice(self, waiting: Waiting) -> OwnerNotice:
        if waiting.place is not None:
            return OwnerNotice((), waiting.place, lambda place: [*self._blocks(waiting, place)])
        notice = self.outbox.to_owner(sentence("memory", waiting.at), "")
        return OwnerNotice(notice.owners, notice.otherwise, lambda place: [*self._blocks(waiting, place)])

    def _blocks(self, waiting: Waiting, place: Place) -> Iterator[Planned]:
        """Yield the messages of a digest: what it is, and each memory with its buttons."""
        source, shown = sentence("memory", waiting.at), waiting.new[:_SHOWN]
        more = waiting.older + len(waiting.new) - len(shown)
        count = len(shown) + more
        what = "1 memory waits: nothing reads it" if count == 1 else f"{count} memories wait: nothing reads them"
        head = f"📝 {what} before you decide."
        head += f" Of these {more} {'is' if more == 1 else 'are'} shown by `/memory`." if more else ""
        yield from self.outbox.notice(source, head, place.channel)
        for one in shown:
            text = words.waiting(one, self.clock.stamp(one.written_at))
            yield from self.outbox.notice(
                source.also(one.memory_id), text, place.channel, words.buttons(one), ours=False
            )
