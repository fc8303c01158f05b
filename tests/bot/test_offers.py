"""What a session is offered is decided once, and anew as soon as anything changes that it follows from."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.people.accounts import Account, Accounts
from bot.people.people import People
from bot.persistence.people import Person
from bot.persistence.turns import TurnKind
from bot.runs import permissions
from bot.runs.permissions import NOT_OWNED, Offer, Permissions
from bot.runs.rooms import Rooms
from channels.message import ChatKind, ChatMoved, InboundKind, InboundMessage, Origin, Place
from tests.bot.store.opened import a_turn, opened
from tests.service import RecordingChannel, ScriptedTool, settings
from tests.watch import Watch

OWN, THEIRS, SHARED = (f"agent:main:telegram:{rest}" for rest in ("direct:1", "direct:2", "group:-5"))
HERE, THERE = ("1", ChatKind.DIRECT), ("-5", ChatKind.GROUP)
NAMES = ("read", "exec", "schedule", "later")
TELEGRAM: dict[str, Any] = {"token": "1:a", "groups": {"policy": "open", "require_mention": False}}


async def act(label: str) -> str:
    return label


def tools(names: Sequence[str] = NAMES) -> list[ScriptedTool]:
    """As those of each run, which are made anew."""
    found = [ScriptedTool(name, act, Watch()) for name in names]
    for one in found:
        one.owner_only = one.name == "schedule"
    return found


class Offers:
    """The permissions of a service whose owner is person 1. telegram: its section."""

    def __init__(self, home: Path, people: People, **telegram: Any) -> None:
        made = settings(home, {"channels": {"telegram": {**TELEGRAM, **telegram}}})
        sections = made.channels.sections()
        self.people = people
        self.channels = {name: RecordingChannel(Watch()) for name in sections["telegram"].bots()}
        accounts = Accounts(
            [
                Account(f"telegram:{name}" if name else "telegram", self.channels[name], section)
                for name, section in sections["telegram"].bots().items()
            ]
        )
        self.rooms = Rooms(
            root=home, people=people, accounts=accounts, scope="per-channel-peer", links={}, has_token=False
        )
        self.permissions = Permissions(
            tools=made.tools, channels=sections, accounts=accounts, people=people, rooms=self.rooms
        )

    def to(
        self,
        key: str,
        *senders: str,
        at: tuple[str, ChatKind] = HERE,
        found: Sequence[str] = NAMES,
        kind: TurnKind = TurnKind.REPLY,
        account: str = "bot",
    ) -> Offer:
        """What a turn that they wrote there is offered. found: names of all tools."""
        place = Place(channel="telegram", account=account, chat=at[0], kind=at[1])
        what = InboundKind.WAKE if kind is TurnKind.BEAT else InboundKind.MESSAGE
        messages = tuple(
            InboundMessage(origin=Origin(place=place, sender=one), event_key="m", kind=what, text="", sent_at=0)
            for one in senders
        )
        turn = a_turn(session_key=key, kind=kind, messages=messages, place=place)
        return self.permissions.offer(turn, self.rooms.of(key), tools(found))


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    async with opened(tmp_path / "state") as store:
        yield People(store, ("telegram:1",))


def test_it_is_decided_once_for_the_same_session_and_people(tmp_path: Path, people: People) -> None:
    offers = Offers(tmp_path, people)
    first = offers.to(OWN, "1")
    assert offers.to(OWN, "1") is first
    assert [spec.name for spec in first.specs] == list(first.names)
    assert offers.to(THEIRS, "2") is not first
    assert offers.to(OWN, "1") is first


def test_who_becomes_an_owner_and_who_is_shut_out(tmp_path: Path, people: People) -> None:
    offers = Offers(tmp_path, people)
    guest = offers.to(THEIRS, "2")
    assert (set(guest.names), set(guest.as_guest)) == ({"read", "exec"}, {"read", "exec"})
    people.let_in(Person("telegram", "", "2", "owner"))
    owner = offers.to(THEIRS, "2")
    assert (owner.names, set(owner.refused), set(owner.as_guest)) == (NAMES, set(), set())
    take_back = people.shut_out("telegram:2", blocked=True)
    assert offers.to(THEIRS, "2") == guest
    take_back()
    assert offers.to(THEIRS, "2") == owner


def test_in_a_group_it_goes_by_all_who_wrote_the_turn(tmp_path: Path, people: People) -> None:
    offers = Offers(tmp_path, people)
    found = {senders: offers.to(SHARED, *senders, at=THERE) for senders in (("1",), ("2",), ("1", "2"), ("1",))}
    assert {one.specs for one in found.values()} == {found["1",].specs}, "the same bytes whoever writes"
    assert found["1",].refused == {"schedule": NOT_OWNED}
    assert set(found["2",].refused) == set(found["1", "2"].refused) == {"schedule", "later"}
    people.let_in(Person("telegram", "", "2", "owner"))
    assert offers.to(SHARED, "1", "2", at=THERE).refused == {"schedule": NOT_OWNED}


def test_where_a_session_is_answered(tmp_path: Path, people: People) -> None:
    groups = {"policy": "open", "allow": {"-5": {"tools": {"deny": ["exec"]}}}}
    offers = Offers(tmp_path, people, groups=groups)
    assert offers.to("agent:main:main", "1").names == NAMES
    assert offers.to("agent:main:main", "1", at=THERE).names == ("read", "schedule", "later")
    assert offers.to("agent:main:main", "1", at=("-6", ChatKind.GROUP)).names == NAMES
    assert offers.to("agent:main:main", "1", at=THERE, kind=TurnKind.BEAT).names == NAMES, "it only answers there"


def test_a_chat_that_has_moved_keeps_its_rules(tmp_path: Path, people: People) -> None:
    groups = {"policy": "open", "allow": {"-5": {"tools": {"deny": ["exec"]}}}}
    offers, new = Offers(tmp_path, people, groups=groups), ("-100", ChatKind.GROUP)
    assert "exec" in offers.to(SHARED, "1", at=new).names
    people.follow(ChatMoved(channel="telegram", account="bot", old_chat="-5", new_chat="-100"))
    assert "exec" not in offers.to(SHARED, "1", at=new).names


def test_an_account_has_its_rules_as_soon_as_it_knows_who_it_is(tmp_path: Path, people: People) -> None:
    offers = Offers(tmp_path, people, accounts={"b": {"token": "2:b", "tools": {"deny": ["exec"]}}})
    offers.channels["b"].account = ""
    key = "agent:main:telegram:two:direct:1"
    assert "exec" in offers.to(key, "1", account="two").names
    offers.channels["b"].account = "two"
    assert "exec" not in offers.to(key, "1", account="two").names


def test_another_tool_set_is_another_offer(tmp_path: Path, people: People) -> None:
    offers = Offers(tmp_path, people)
    assert offers.to(OWN, "1").names == NAMES
    assert offers.to(OWN, "1", found=("later", "read")).names == ("later", "read")
    assert offers.to(OWN, "1").names == NAMES


def test_only_so_many_are_kept(tmp_path: Path, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "MOST", 2)
    offers = Offers(tmp_path, people)
    first = offers.to(OWN, "1")
    for sender in ("2", "3", "4"):
        offers.to(f"agent:main:telegram:direct:{sender}", sender)
    again = offers.to(OWN, "1")
    assert again == first
    assert again is not first
