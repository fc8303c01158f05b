"""What people who are no owners may use, what widens it, and that several people have the rights of the least."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.tools.registry import GUEST
from bot.people.access import OWNER, PERSON
from bot.people.accounts import Account, Accounts
from bot.people.people import People
from bot.persistence.turns import TurnKind
from bot.runs.permissions import FOR_GUESTS, NO_OWNER, NOT_OWNED, UNTRUSTED, Offer, Permissions
from bot.runs.rooms import Rooms
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from tests.bot.runs.test_messaging import calls, place, service, written
from tests.bot.store.opened import a_turn
from tests.service import ScriptedTool, settings
from tests.serving import PlainChannel
from tests.watch import Watch

DIRECT, GROUP = ChatKind.DIRECT, ChatKind.GROUP
CODING = {
    "stay_silent",
    "ask_person",
    "task_list",
    "message",
    "read",
    "write",
    "edit",
    "glob",
    "grep",
    "exec",
    "process",
    "memory_write",
    "memory_search",
    "memory_get",
}
LATER = {"web_fetch", "sessions_spawn"}  # of later versions, or not for guests
OF_OWNERS = {"schedule"}
TOOLS = (*sorted(CODING), *sorted(LATER), *OF_OWNERS)
GROUPS = {"groups": {"policy": "open", "require_mention": False}}


async def act(label: str) -> str:
    return label


def tools() -> list[ScriptedTool]:
    found = [ScriptedTool(name, act, Watch()) for name in TOOLS]
    for one in found:
        one.owner_only = one.name in OF_OWNERS
        one.trusted_only = one.name in ("exec", "process")
    return found


def wrote(sender: str, kind: ChatKind = DIRECT, what: InboundKind = InboundKind.MESSAGE) -> InboundMessage:
    """A message of somebody, directly or in the group; over HTTP they are OWNER or PERSON."""
    channel = "http" if kind is ChatKind.API else "telegram"
    chat = sender if kind is DIRECT else "-5"
    where = Place(channel=channel, account="" if channel == "http" else "bot", chat=chat, kind=kind)
    return InboundMessage(origin=Origin(place=where, sender=sender), event_key="m", kind=what, text="", sent_at=0)


def offer(
    home: Path,
    key: str,
    *messages: InboundMessage,
    tools_: Mapping[str, Any] | None = None,
    sessions: Mapping[str, Any] | None = None,
    **telegram: Any,
) -> Offer:
    """What a turn of these messages is offered, where person 1 is the owner. tools_, sessions, telegram: sections."""
    changes = {
        "tools": tools_ or {},
        "sessions": sessions or {},
        "channels": {"telegram": {"token": "1:a", **GROUPS, **telegram}},
    }
    made = settings(home, changes)
    sections = made.channels.sections()
    accounts = Accounts([Account("telegram", PlainChannel(), sections["telegram"])])
    people = People(None, made.owners)  # type: ignore[arg-type]  # nothing is loaded
    rooms = Rooms(
        root=home,
        people=people,
        accounts=accounts,
        scope=made.sessions.dm_scope,
        links=made.sessions.identity_links,
        has_token=False,
    )
    permissions = Permissions(tools=made.tools, channels=sections, accounts=accounts, people=people, rooms=rooms)
    kind = TurnKind.BEAT if messages[0].kind is InboundKind.WAKE else TurnKind.REPLY
    turn = a_turn(session_key=key, kind=kind, messages=messages, place=messages[0].origin.place)
    return permissions.offer(turn, rooms.of(key), tools())


def offered(found: Offer) -> set[str]:
    return set(found.names)


OWN, THEIRS, SHARED = "agent:main:telegram:direct:1", "agent:main:telegram:direct:2", "agent:main:telegram:group:-5"


def test_an_owner_has_everything(tmp_path: Path) -> None:
    found = offer(tmp_path, OWN, wrote("1"))
    assert (offered(found), dict(found.refused), set(found.as_guest)) == (set(TOOLS), {}, set())


def test_a_guest_has_what_the_profile_names(tmp_path: Path) -> None:
    found = offer(tmp_path, THEIRS, wrote("2"))
    assert offered(found) == set(GUEST) == CODING
    assert set(found.as_guest) == CODING
    assert found.refused == dict.fromkeys(LATER, FOR_GUESTS) | {"schedule": NOT_OWNED}


_SAID = {"stay_silent", "ask_person", "task_list", "message"}
WIDER: list[tuple[Mapping[str, Any], Mapping[str, Any], set[str], set[str]]] = [
    ({}, {}, CODING, CODING),
    ({"by_sender": {"telegram:2": {"profile": "full"}}}, {}, {*CODING, *LATER}, set()),
    ({"by_sender": {"telegram:*": {"profile": "coding"}}}, {}, {*CODING, *LATER}, set()),
    ({"by_sender": {"telegram:2": {"profile": "messaging"}}}, {}, {*CODING, "sessions_spawn"}, CODING - _SAID),
    ({"by_sender": {"telegram:3": {"profile": "full"}}}, {}, CODING, CODING),
    (
        {"by_sender": {"telegram:2": {"profile": "minimal"}}},
        {},
        CODING,
        CODING - {"stay_silent", "ask_person", "task_list"},
    ),
    ({"by_sender": {"telegram:2": {"allow": ["group:web", "read"]}}}, {}, {*CODING, "web_fetch"}, set()),
    ({}, {"tools": {"profile": "full"}}, {*CODING, *LATER}, set()),
    ({"deny": ["exec"], "by_sender": {"telegram:2": {"profile": "full"}}}, {}, {*CODING, *LATER} - {"exec"}, set()),
    ({"profile": "messaging", "by_sender": {"telegram:2": {"profile": "full"}}}, {}, {*_SAID, "sessions_spawn"}, set()),
]


@pytest.mark.parametrize(("changes", "channel", "there", "as_guest"), WIDER)
@pytest.mark.parametrize("scope", ["per-channel-peer", "per-peer"])
def test_what_is_there_beyond_it_is_there_in_full(
    tmp_path: Path, changes: Any, channel: Any, there: set[str], as_guest: set[str], scope: str
) -> None:
    key = THEIRS if scope == "per-channel-peer" else "agent:main:direct:telegram%3A2"
    found = offer(tmp_path, key, wrote("2"), tools_=changes, sessions={"dm_scope": scope}, **channel)
    assert (offered(found), set(found.as_guest)) == (there, as_guest)
    assert "schedule" in found.refused, "what only owners may use is never widened"


def test_allow_goes_on_to_mean_only_these_and_deny_wins(tmp_path: Path) -> None:
    lists = {"telegram:2": {"allow": ["read", "group:web"], "profile": "full", "deny": ["group:web"]}}
    found = offer(tmp_path, THEIRS, wrote("2"), tools_={"by_sender": lists})
    assert offered(found) - set(found.refused) == {"read"}
    assert found.refused["write"] == "not allowed by `tools.by_sender.telegram:2.allow`"
    assert found.refused["web_fetch"] == "not allowed by `tools.by_sender.telegram:2.deny`"


@pytest.mark.parametrize("senders", [("2",), ("1", "2"), ("2", "1"), ("1", "1", "2", "1")])
def test_a_turn_of_several_people_has_the_rights_of_the_least(tmp_path: Path, senders: Sequence[str]) -> None:
    found = offer(tmp_path, SHARED, *(wrote(sender, GROUP) for sender in senders))
    assert offered(found) == {*CODING, *LATER}, "the same bytes for all who write there"
    assert found.refused == dict.fromkeys(LATER, FOR_GUESTS) | {"schedule": NOT_OWNED}
    assert set(found.as_guest) == CODING


def test_a_turn_of_owners_in_a_group_has_all_that_it_has(tmp_path: Path) -> None:
    found = offer(tmp_path, SHARED, wrote("1", GROUP), wrote("1", GROUP))
    assert (offered(found), set(found.as_guest)) == ({*CODING, *LATER}, set())
    assert found.refused == {"schedule": NOT_OWNED}


def test_a_group_may_have_more_and_only_there(tmp_path: Path) -> None:
    groups = {"policy": "open", "allow": {"-5": {"tools": {"profile": "coding", "deny": ["process"]}}}}
    found = offer(tmp_path, SHARED, wrote("2", GROUP), wrote("3", GROUP), groups=groups)
    assert set(found.refused) == {"process", "schedule"}
    assert set(found.as_guest) == set()
    found = offer(tmp_path, THEIRS, wrote("2"), groups=groups)
    assert set(found.as_guest) == CODING


def test_one_who_may_more_does_not_widen_what_another_has(tmp_path: Path) -> None:
    by_sender = {"telegram:2": {"profile": "full"}}
    found = offer(tmp_path, SHARED, wrote("2", GROUP), wrote("3", GROUP), tools_={"by_sender": by_sender})
    assert set(found.as_guest) == CODING
    assert found.refused["web_fetch"] == FOR_GUESTS


def test_everybody_can_be_a_guest(tmp_path: Path) -> None:
    found = offer(tmp_path, OWN, wrote("1"), tools_={"profile": "guest"})
    assert set(found.as_guest) == CODING
    assert found.refused == dict.fromkeys((*LATER, *OF_OWNERS), "not allowed by `tools.profile: guest`")
    widened = {"profile": "guest", "by_sender": {"telegram:1": {"profile": "full"}}}
    found = offer(tmp_path, OWN, wrote("1"), tools_=widened)
    assert (dict(found.refused), set(found.as_guest)) == ({}, set())


def test_the_session_that_all_share_decides_at_the_call(tmp_path: Path) -> None:
    sessions = {"dm_scope": "main"}
    owner = offer(tmp_path, "agent:main:main", wrote("1"), sessions=sessions)
    guest = offer(tmp_path, "agent:main:main", wrote("2"), sessions=sessions)
    assert offered(owner) == offered(guest) == set(TOOLS)
    assert (dict(owner.refused), set(owner.as_guest)) == ({}, set())
    assert guest.refused == dict.fromkeys(LATER, FOR_GUESTS) | {"schedule": NO_OWNER}
    assert set(guest.as_guest) == CODING


@pytest.mark.parametrize(("key", "sender", "guest"), [(OWN, "", False), (THEIRS, "2", True), (SHARED, "", True)])
def test_a_beat_is_its_owners_where_they_alone_write(tmp_path: Path, key: str, sender: str, guest: bool) -> None:
    kind = GROUP if key == SHARED else DIRECT
    found = offer(tmp_path, key, wrote(sender, kind, InboundKind.WAKE))
    assert ("exec" in found.as_guest) is guest
    a_message = offer(tmp_path, key, wrote(sender, kind))
    assert "exec" in a_message.as_guest, "what somebody wrote is theirs"


def test_programs_without_the_token_are_guests(tmp_path: Path) -> None:
    key = "agent:main:http:direct:x"
    found = offer(tmp_path, key, wrote(PERSON, ChatKind.API))
    assert set(found.as_guest) >= {"read", "write"}
    assert found.refused["exec"] == UNTRUSTED
    assert found.refused["web_fetch"] == FOR_GUESTS
    both = offer(tmp_path, key, wrote(OWNER, ChatKind.API), wrote(PERSON, ChatKind.API))
    assert (both.refused["exec"], both.refused["web_fetch"]) == (UNTRUSTED, FOR_GUESTS)
    assert offer(tmp_path, key, wrote(OWNER, ChatKind.API)).as_guest == set()


def test_a_bot_is_no_owner_whatever_its_id(tmp_path: Path) -> None:
    message = wrote("1", GROUP)
    found = offer(tmp_path, SHARED, replace(message, origin=replace(message.origin, by_bot=True)))
    assert set(found.as_guest) == CODING


async def test_a_guest_writes_into_their_own_conversation_alone(tmp_path: Path) -> None:
    """And learns of no other, not even whether it is there."""
    async with service(tmp_path, {"channels": {"telegram": GROUPS}}) as hark:
        hark.channel.places = {"-5": place("-5")}
        await hark.accept(written(hark, "hello", "-5", "Secret club", "1"))
        await hark.until_texts(1, "-5")
        targets = ("-5", "Secret club", "Secret clu", "telegram:-5", "nobody", "telegram:1")
        told = await calls(hark, *({"action": "send", "to": to, "text": f"to {to}"} for to in targets), sender="2")
        assert told == [("Only this conversation can be written to: whoever asks is no owner of this bot.", True)] * 6
        ((here, failed),) = await calls(hark, {"action": "send", "to": "2", "text": "here"}, sender="2")
        assert (here.startswith("Sent"), failed) == (True, False)
        assert "here" in hark.channel.texts("2")
        assert [one.body for one in hark.channel.sent if one.body.startswith("to ")] == []
        ((there, failed),) = await calls(hark, {"action": "send", "to": "-5", "text": "of the owner"}, sender="1")
        assert (there.startswith("Sent"), failed) == (True, False)
