"""When the book of messages is checked."""

from pathlib import Path

from bot.gateway.balance import CHECK_EVERY
from tests.service import Hark, running


def red(hark: Hark) -> str:
    found = hark.service.parts.health.view()
    return "" if found.ready else found.channels["balance"].detail


async def test_it_is_checked_at_the_start_and_again_by_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("one")
        await hark.say("two")
    hark.stored.spoil("DELETE FROM turn WHERE turn_id=(SELECT turn_id FROM inbox WHERE seq=1)")
    async with running(tmp_path) as hark:
        await hark.until(lambda: red(hark), "red")
        assert "1 (its turn is missing)" in red(hark)
        book = await hark.service.parts.book.accept_message("1")
        assert (book.unexplained, red(hark)) == ((), "")

        hark.stored.spoil("DELETE FROM delivery WHERE delivery_id=2")
        await hark.time.until_pause(CHECK_EVERY)
        hark.time.advance(CHECK_EVERY)
        await hark.until(lambda: red(hark), "red again")
        assert "2 (a delivery of it is missing)" in red(hark)
