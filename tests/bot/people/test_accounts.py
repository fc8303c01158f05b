"""Several accounts of one channel: each delivers what is its own, once it knows who it is."""

from pathlib import Path

from bot.clock import Clock
from bot.outbox import Outbox
from bot.people.accounts import Account, Accounts, twins
from bot.people.people import People
from channels.message import ChatKind, Place
from channels.settings import ChannelSection
from tests.bot.store.opened import opened
from tests.bot.test_outbox_close import plan
from tests.service import RecordingChannel
from tests.watch import Watch


def channel(watch: Watch, account: str) -> RecordingChannel:
    found = RecordingChannel(watch)
    found.account = account
    return found


async def test_what_one_account_owes_waits_until_it_is_known(tmp_path: Path) -> None:
    watch = Watch()
    other, own = channel(watch, "other"), channel(watch, "")
    async with opened(tmp_path) as store:
        outbox = Outbox(store, Clock(), 60_000, People(store, ()))
        outbox.add_channel(other)
        outbox.add_channel(own)
        await plan(store, outbox, "words")
        outbox.can_send("telegram", "other")
        await outbox.serve_open()
        await outbox.close(0)
        assert other.texts() == own.texts() == []

        outbox = Outbox(store, Clock(), 60_000, People(store, ()))
        outbox.add_channel(other)
        outbox.add_channel(own)
        await outbox.start()
        own.account = "bot"
        outbox.can_send("telegram", "bot")
        await watch.until(own.texts, "the words")
        await outbox.close(1)
        assert (other.texts(), own.texts()) == ([], ["words"])


def test_an_account_is_found_by_its_id() -> None:
    watch = Watch()
    first, second = (Account(label, channel(watch, label), ChannelSection()) for label in ("1", "2"))
    accounts = Accounts((first, second))
    place = Place(channel="telegram", account="2", chat="1", kind=ChatKind.DIRECT)
    gone = Place(channel="telegram", account="3", chat="1", kind=ChatKind.DIRECT)
    assert (accounts.of(place), accounts.of(gone)) == (second, None)
    assert (accounts.like(place), accounts.like(gone)) == (second, first)


def test_an_account_is_found_as_soon_as_it_knows_its_id() -> None:
    """Also where another one was found before: of two that turn out to be one bot it is the first."""
    watch = Watch()
    unknown = channel(watch, "")
    first = Account("1", unknown, ChannelSection())
    second = Account("2", channel(watch, "b"), ChannelSection())
    accounts = Accounts((first, second))
    own, other = (Place(channel="telegram", account=known, chat="1", kind=ChatKind.DIRECT) for known in ("a", "b"))
    assert (accounts.of(own), accounts.like(own), accounts.of(other)) == (None, first, second)
    unknown.account = "b"
    assert (accounts.of(other), accounts.like(other)) == (first, first)
    assert (accounts.of(other), accounts.of(own), accounts.like(own)) == (first, None, first)


def test_only_accounts_that_are_known_can_be_the_same() -> None:
    watch = Watch()
    accounts = [Account(str(number), channel(watch, name), ChannelSection()) for number, name in enumerate("aab")]
    assert twins(accounts) == {"1": "0"}
    unknown = [Account(str(number), channel(watch, ""), ChannelSection()) for number in range(2)]
    assert twins(unknown) == {}
