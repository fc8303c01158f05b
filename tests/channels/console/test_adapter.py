"""The terminal as a surface: nothing is sent there, because terminals read what is stored."""

from pathlib import Path

from bot.persistence.deliveries import OwnerNotice
from channels.base import HealthState
from channels.console.adapter import PLACE, ConsoleSurface
from channels.outgoing import Planned
from channels.session_key import console_key
from channels.sources import sentence
from tests.bot.store.opened import opened


class Sink:
    """Nothing is handed to it."""

    def can_send(self, channel: str, account: str) -> None:
        raise AssertionError("nobody waits")

    async def accept(self, batch: object, mark: object) -> None:
        raise AssertionError("a terminal sends through the gateway")

    async def mark(self, scope: str) -> None:
        return None


async def test_health_is_that_of_its_life() -> None:
    console = ConsoleSurface(lambda: 7)
    assert console.health().state is HealthState.STARTING
    await console.start(Sink())
    assert console.health().state is HealthState.READY
    await console.close()
    assert console.health().state is HealthState.DOWN


async def test_a_notice_to_the_owner_is_said_there_once_and_is_sent_with_it(tmp_path: Path) -> None:
    def notice(text: str) -> OwnerNotice:
        return OwnerNotice((), PLACE, lambda place: (Planned(source=sentence(f"salvage:{text}"), body=text, nonce=1),))

    async with opened(tmp_path) as store:
        for text in ("one", "two", "one"):
            await store.deliveries.tell_owner(notice(text))
        assert await store.deliveries.open_conversations() == []
        assert (await store.reads.totals()).undelivered == 0
        kept = await store.reads.events_after(0, await store.reads.last_event(), console_key(), None, 10)
        assert [event.type for event in kept] == ["notice", "notice"]
        assert [f'"detail":"{text}"' in event.body for text, event in zip(("one", "two"), kept, strict=True)] == [
            True
        ] * 2
