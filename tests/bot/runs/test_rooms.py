"""Which folder a session works in: a table of keys and paths, and that no two rooms are one folder."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.tools.workspace import Workspace
from bot.people.accounts import Account, Accounts
from bot.people.people import People
from bot.persistence.people import Person
from bot.runs.rooms import Furniture, Room, Rooms
from channels.message import ChatKind, Origin, Place
from channels.session_key import DmScope, heartbeat_key, http_key, job_key, link_index, session_key
from channels.telegram.settings import TelegramAccount
from tests.bot.store.opened import opened
from tests.serving import PlainChannel

OWNERS = ("telegram:1", "slack:U1", "telegram:-5", "http:x", "discord:1")
LINKS = {"ada": ("telegram:1", "slack:U1"), "bob": ("telegram:1", "telegram:7"), "telegram:1": ("discord:8",)}
LONG = "x" * 200


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    async with opened(tmp_path / "state") as store:
        yield People(store, OWNERS)


def rooms(
    people: People, root: Path, scope: DmScope = "per-channel-peer", dm: Any = None, token: bool = False
) -> Rooms:
    """The rooms of a service with one account on Telegram, where people may write directly as `dm` says."""
    section = TelegramAccount.model_validate({"dm": dm or {}})
    accounts = Accounts([Account("telegram", PlainChannel(), section)])
    return Rooms(root=root, people=people, accounts=accounts, scope=scope, links=LINKS, has_token=token)


def key_of(kind: ChatKind, chat: str, scope: DmScope = "per-channel-peer", **more: Any) -> str:
    """The session of what somebody writes there; directly they are the chat."""
    channel, account, groups = more.pop("channel", "telegram"), more.pop("account", ""), more.pop("groups", "thread")
    place = Place(channel=channel, account=account, chat=chat, kind=kind, thread=more.pop("thread", ""))
    origin = Origin(place=place, sender=more.pop("sender", chat if kind is ChatKind.DIRECT else "1"))
    return session_key(origin, scope, link_index(LINKS), with_account=bool(account), groups=groups)


DIRECT, GROUP, CHANNEL = ChatKind.DIRECT, ChatKind.GROUP, ChatKind.CHANNEL
TABLE = [
    ("agent:main:main", ""),
    ("agent:main:console:direct:local", ""),
    (job_key("j1"), ""),
    (job_key("telegram:7"), ""),
    (job_key("j1", "agent:main:telegram:group:-7"), "groups/telegram--7"),
    (job_key("j1", "agent:main:telegram:direct:2"), "people/telegram-2"),
    (job_key("j1", "agent:main:telegram:direct:1"), ""),
    (key_of(DIRECT, "1"), ""),
    (key_of(DIRECT, "7"), "people/telegram-7"),
    (key_of(DIRECT, "1", channel="slack"), "people/slack-1"),
    (key_of(DIRECT, "1", channel="discord"), ""),
    (key_of(DIRECT, "U1", channel="slack"), ""),
    (key_of(DIRECT, "U0AB12CD", channel="slack"), "people/slack-U0AB12CD"),
    (key_of(DIRECT, "u1", channel="slack"), "people/slack-u1="),
    (key_of(DIRECT, "Uu", channel="slack"), "people/slack-%55u="),
    (key_of(DIRECT, "1", "per-account-channel-peer", account="bot"), ""),
    (key_of(DIRECT, "7", "per-account-channel-peer", account="direct"), "people/telegram-7"),
    (key_of(DIRECT, "1", "per-peer"), "people/person-bob"),  # the last who was said to have that id
    (key_of(DIRECT, "U1", "per-peer", channel="slack"), ""),
    (key_of(DIRECT, "9", "per-peer"), "people/telegram-9"),
    (key_of(DIRECT, "8", "per-peer", channel="discord"), "people/person-telegram%3A1"),
    ("agent:main:direct:ada", ""),
    ("agent:main:direct:bob", "people/person-bob"),
    ("agent:main:direct:Ada", "people/person-%41da"),
    ("agent:main:direct:telegram%3A-5", ""),
    (http_key("x"), "people/http-x"),
    (http_key("Work"), "people/http-%57ork"),
    (http_key("../../etc"), "people/http-..%2F..%2Fetc"),
    (http_key(""), "people/http-%"),
    (key_of(GROUP, "-5"), "groups/telegram--5"),
    (key_of(GROUP, "-5", thread="9"), "groups/telegram--5"),
    (key_of(GROUP, "-5", account="group"), "groups/telegram--5"),
    (key_of(GROUP, "-5", groups="person", sender="1"), "groups/telegram--5%2F1"),
    (key_of(CHANNEL, "C0AB", channel="slack", thread="17.1"), "groups/slack-C0AB"),
    (key_of(CHANNEL, "1", channel="a-b"), "groups/a%2Db-1"),
    (key_of(CHANNEL, "b-1", channel="a"), "groups/a-b-1="),
]


@pytest.mark.parametrize(("key", "name"), TABLE)
def test_the_room_of_a_session(people: People, tmp_path: Path, key: str, name: str) -> None:
    found = rooms(people, tmp_path)
    assert found.of(key) == Room(tmp_path / name if name else tmp_path, name == "", name)
    for below in (heartbeat_key(key), f"{key}:subagent:a", heartbeat_key(f"{key}:subagent:a:subagent:b")):
        assert found.of(below) == found.of(key), "beats and children have the room of their session"


@pytest.mark.parametrize("key", [http_key("x"), http_key("default")])
def test_with_a_token_programs_are_owners(people: People, tmp_path: Path, key: str) -> None:
    assert rooms(people, tmp_path, token=True).of(key) == Room(tmp_path, True, "")


def test_what_is_no_key_has_no_room(people: People, tmp_path: Path) -> None:
    for key in ("", "agent:main", "agent:main:telegram:direct:", "people/telegram-7", "agent:main:main:heartbeat:x"):
        with pytest.raises(ValueError, match="not a session key"):
            rooms(people, tmp_path).of(key)


WORDS = st.text(st.characters() | st.sampled_from("aA-%=./~@:\x00 "), max_size=12)
IDS = st.one_of(WORDS, st.sampled_from([LONG, LONG.upper(), LONG + "y", "." * 150, ".", "..", ""]))


@given(st.lists(st.tuples(st.sampled_from(["a", "a-b", "slack", "http"]), st.sampled_from(["direct", "group"]), IDS)))
@example([("slack", "direct", one) for one in ("U1", "u1", "%75%31", "u1=", "U1=", "%551", "u%31", "")])
@example([("http", "direct", one) for one in (LONG, http_key(LONG).rpartition(":")[2], LONG.upper(), LONG + "y")])
@example([("http", "direct", "A" * 90 + one) for one in "xyzX"])
@settings(deadline=None)
def test_no_two_conversations_share_a_room(found: list[tuple[str, str, str]]) -> None:
    """Not even where a file system takes large and small letters for the same."""
    made = Rooms(
        root=Path("/"),
        people=People(None, ()),  # type: ignore[arg-type]  # nothing is loaded
        accounts=Accounts(),
        scope="per-peer",
        links={},
        has_token=False,
    )
    names: dict[str, tuple[str, str]] = {}
    for channel, kind, one in found:
        place = Place(channel=channel, account="", chat=one or "0", kind=GROUP if kind == "group" else DIRECT)
        if channel == "http":
            key = str(http_key(one))
        else:
            key = session_key(Origin(place=place, sender=one), "per-channel-peer", {}, with_account=False)
        name = made.of(key).name
        above, _, folder = name.partition("/")
        assert above in ("people", "groups")
        assert folder.isascii()
        assert folder.isprintable()
        assert "/" not in folder
        assert len(folder) <= 128
        assert names.setdefault(name.casefold(), (above, key)) == (above, key)
        made.root.joinpath(*Path(name).parts).relative_to("/")
        assert ".." not in Path(name).parts


def person(sender: str, standing: Any = "allowed", channel: str = "telegram") -> Person:
    return Person(channel, "bot", sender, standing)


@pytest.mark.parametrize(
    ("dm", "let_in", "name"),
    [
        ({"policy": "pairing"}, (), ""),
        ({"policy": "pairing"}, ("7",), "groups/main"),
        ({"policy": "pairing"}, ("1",), ""),
        ({"policy": "allowlist"}, ("7",), ""),
        ({"policy": "allowlist", "allow_from": ["1"]}, (), ""),
        ({"policy": "allowlist", "allow_from": ["1", "7"]}, (), "groups/main"),
        ({"policy": "pairing", "allow_from": ["7"]}, (), "groups/main"),
        ({"policy": "open"}, (), "groups/main"),
        ({"policy": "disabled", "allow_from": ["7"]}, ("7",), ""),
    ],
)
def test_the_session_that_all_share(people: People, tmp_path: Path, dm: Any, let_in: Sequence[str], name: str) -> None:
    found = rooms(people, tmp_path, "main", dm)
    for sender in let_in:
        people.let_in(person(sender))
    for key in ("agent:main:main", "agent:main:main:heartbeat"):
        assert found.of(key).name == name
        assert found.of(key).owned is (name == "")
    assert rooms(people, tmp_path, "per-peer", dm).of("agent:main:main").owned, "only owners reach it"


def test_who_is_who_changes_at_once(people: People, tmp_path: Path) -> None:
    found, key = rooms(people, tmp_path, "main"), key_of(DIRECT, "7")
    people.let_in(person("7"))
    assert (found.of(key).name, found.of("agent:main:main").name) == ("people/telegram-7", "groups/main")
    people.let_in(person("7", "owner"))
    assert (found.of(key).name, found.of("agent:main:main").name) == ("", "")


def bare(room: Room, workspace: Workspace) -> Furniture:
    """A room with nothing in it."""
    return Furniture(room=room, workspace=workspace, overflow=None, images=None, tools=())  # type: ignore[arg-type]


async def test_two_sessions_of_one_room_begin_at_once(
    people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Workspace] = []
    monkeypatch.setattr("bot.runs.rooms.create_room", lambda room, above: made.append(room))
    found = rooms(people, tmp_path)
    found.furnish = bare
    await asyncio.gather(found.enter(key_of(DIRECT, "7")), found.enter(key_of(DIRECT, "7", account="second")))
    assert len(made) == 1


async def test_what_is_in_a_room_is_made_once(people: People, tmp_path: Path) -> None:
    made: list[str] = []

    def furnish(room: Room, workspace: Workspace) -> Furniture:
        made.append(room.name)
        return bare(room, workspace)

    found = rooms(people, tmp_path)
    found.furnish = furnish
    for key in (key_of(DIRECT, "7"), key_of(DIRECT, "7"), key_of(DIRECT, "1"), "agent:main:main"):
        inside = await found.enter(key)
        assert inside is found.inside(key)
        assert inside.workspace.root == found.of(key).path
    assert made == ["people/telegram-7", ""]
    assert sorted(path.name for path in (tmp_path / "people" / "telegram-7").iterdir()) == ["MEMORY.md", "USER.md"]
    assert not (tmp_path / "MEMORY.md").exists(), "the workspace is made at the start"


def test_the_room_of_a_session_follows_what_is_said_of_people(people: People, tmp_path: Path) -> None:
    made, key = rooms(people, tmp_path), key_of(DIRECT, "7")
    assert (made.of(key).name, made.of(key).owned) == ("people/telegram-7", False)
    people.let_in(Person("telegram", "", "7", "owner"))
    assert (made.of(key).name, made.of(key).owned) == ("", True)
    take_back = people.shut_out("telegram:7", blocked=True)
    assert not made.of(key).owned
    take_back()
    assert made.of(key).owned


@pytest.mark.parametrize(
    ("owned", "by_owners", "kind", "sees"),
    [
        (True, True, ChatKind.DIRECT, True),
        (True, True, ChatKind.CONSOLE, True),
        (True, True, ChatKind.API, True),
        (True, True, ChatKind.GROUP, False),  # a heartbeat turn that answers there
        (True, True, ChatKind.CHANNEL, False),
        (True, True, ChatKind.THREAD, False),
        (True, False, ChatKind.DIRECT, False),
        (False, True, ChatKind.DIRECT, False),
    ],
)
def test_everything_is_seen_only_where_owners_alone_read(
    owned: bool, by_owners: bool, kind: ChatKind, sees: bool
) -> None:
    room, place = Room(Path("/w"), owned, ""), Place(channel="telegram", account="bot", chat="1", kind=kind)
    assert room.sees_all(place, by_owners=by_owners) == sees
