"""Session keys: two conversations never share one, and a key says what it was made from."""

from typing import Literal, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import ChatKind, Origin, Place
from channels.session_key import (
    LONGEST,
    DmScope,
    SessionKey,
    console_key,
    http_key,
    link_index,
    parse,
    session_key,
)

RESERVED = ["direct", "group", "channel", "thread", "job", "main", "subagent", "heartbeat", "http", "console", "agent"]
NASTY = ["", ":", "%", "%64irect", "%3A", "1:thread:2", "a:heartbeat", "=", "x=" + "0" * 32, "Ab", "ab", "-100123"]
ID = st.one_of(
    st.sampled_from(RESERVED + NASTY), st.text(max_size=20), st.text(alphabet="a:%", max_size=8), st.just("é" * 99)
)
KINDS = st.sampled_from([ChatKind.DIRECT, ChatKind.GROUP, ChatKind.CHANNEL, ChatKind.THREAD])


Shared = Literal["chat", "thread", "person"]
SHARED: tuple[Shared, ...] = ("chat", "thread", "person")


class Made(NamedTuple):
    """A key and what two keys must differ in to be different."""

    key: SessionKey
    identity: tuple[object, ...]


def _below(key: str, what: str, name: str) -> SessionKey:
    """A job or a sub-agent, as a name is written in every key."""
    return SessionKey(f"{key}:{what}:{http_key(name).rpartition(':')[2]}")


@st.composite
def made(draw: st.DrawFn, groups: Shared) -> Made:
    what = draw(st.sampled_from(["place", "place", "place", "peer", "job", "http", "console"]))
    name = draw(ID)
    match what:
        case "job":
            key, identity = _below("agent:main", "job", name), ("job", name)
        case "http":
            key, identity = http_key(name), ("http", name)
        case "console":
            key, identity = console_key(), ("console",)
        case _:
            kind = ChatKind.DIRECT if what == "peer" else draw(KINDS)
            place = Place(channel=draw(ID), account=draw(ID), chat=name, kind=kind, thread=draw(ID))
            scope = "per-peer" if what == "peer" else "per-channel-peer"
            with_account = draw(st.booleans())
            sender = draw(ID) if groups == "person" and kind is not ChatKind.DIRECT else ""
            key = session_key(Origin(place=place, sender=sender), scope, {}, with_account, groups)
            shared = groups == "thread" or kind is ChatKind.DIRECT
            shown = ChatKind.CHANNEL if kind is ChatKind.THREAD else kind
            if what == "peer":
                identity = ("peer", f"{place.channel}:{name}")
            else:
                account = place.account if with_account else None
                identity = ("place", shown, place.channel, account, name, sender, place.thread if shared else "")
    for child in draw(st.lists(ID, max_size=2)):
        key, identity = _below(key, "subagent", child), (*identity, "child", child)
    if draw(st.booleans()):
        key, identity = SessionKey(f"{key}:heartbeat"), (*identity, "heartbeat")
    return Made(key, identity)


@given(st.sampled_from(SHARED).flatmap(lambda groups: st.lists(made(groups), min_size=2, max_size=12)))
def test_two_conversations_never_share_a_key(keys: list[Made]) -> None:
    for one in keys:
        for other in keys:
            assert (one.key == other.key) == (one.identity == other.identity)


@given(ID, ID, ID, ID, KINDS, st.sampled_from(SHARED), st.booleans(), st.lists(ID, max_size=3), st.booleans())
def test_a_key_says_what_it_was_made_from(
    channel: str,
    account: str,
    chat: str,
    thread: str,
    kind: ChatKind,
    groups: Shared,
    with_account: bool,
    children: list[str],
    beat: bool,
) -> None:
    place = Place(channel=channel, account=account, chat=chat, kind=kind, thread=thread)
    origin = Origin(place=place, sender="" if kind is ChatKind.DIRECT else "7")
    base = key = session_key(origin, "per-channel-peer", {}, with_account, groups)
    if kind is not ChatKind.DIRECT and groups != "thread":
        thread, chat = "", f"{quote(chat, safe='@', errors='surrogatepass')}/7" if groups == "person" else chat
    for child in children:
        key = _below(key, "subagent", child)
    if beat:
        key = SessionKey(f"{key}:heartbeat")
    found = parse(key)
    assert found.base == base
    assert found.kind == ("channel" if kind is ChatKind.THREAD else kind)
    assert found.heartbeat is beat
    expected = (channel, account if with_account else "", chat, thread, *children)
    for value, original in zip(
        (found.channel, found.account, found.id, found.thread, *found.children), expected, strict=True
    ):
        assert value == original or ("=" in value and len(value) <= LONGEST < 3 * len(original.encode()))


@given(ID)
def test_job_and_http_names_come_back(name: str) -> None:
    for key, kind in ((_below("agent:main", "job", name), "job"), (http_key(name), "direct")):
        found = parse(key)
        assert found.kind == kind
        assert found.id == name or ("=" in found.id and 3 * len(name.encode()) > LONGEST)


@given(st.one_of(st.text(), st.lists(st.sampled_from([*RESERVED, "a", "", "%"]), max_size=8).map(":".join)))
def test_parse_either_reads_a_key_or_says_that_it_is_none(text: str) -> None:
    try:
        found = parse(text)
    except ValueError:
        return
    assert text.startswith(found.base)
    assert parse(found.base).base == found.base


def origin(kind: ChatKind, chat: str, sender: str = "7", thread: str = "") -> Origin:
    return Origin(
        place=Place(channel="telegram", account="99", chat=chat, kind=kind, thread=thread),
        sender=sender,
        message_id="1",
    )


DIRECT = origin(ChatKind.DIRECT, "7")


@pytest.mark.parametrize(
    ("made_from", "scope", "with_account", "expected"),
    [
        (DIRECT, "main", False, "agent:main:main"),
        (DIRECT, "main", True, "agent:main:main"),
        (DIRECT, "per-peer", False, "agent:main:direct:telegram%3A7"),
        (DIRECT, "per-channel-peer", False, "agent:main:telegram:direct:7"),
        (DIRECT, "per-channel-peer", True, "agent:main:telegram:99:direct:7"),
        (DIRECT, "per-account-channel-peer", False, "agent:main:telegram:99:direct:7"),
        (origin(ChatKind.GROUP, "-100"), "main", False, "agent:main:telegram:group:-100"),
        (origin(ChatKind.GROUP, "-100", thread="5"), "main", True, "agent:main:telegram:99:group:-100:thread:5"),
        (origin(ChatKind.CHANNEL, "C1"), "per-peer", False, "agent:main:telegram:channel:C1"),
        (origin(ChatKind.THREAD, "C1", thread="9"), "main", False, "agent:main:telegram:channel:C1:thread:9"),
        (origin(ChatKind.CONSOLE, "local"), "main", False, "agent:main:console:direct:local"),
        (origin(ChatKind.API, "ci"), "main", False, "agent:main:http:direct:ci"),
    ],
)
def test_the_fixed_names(made_from: Origin, scope: DmScope, with_account: bool, expected: str) -> None:
    assert session_key(made_from, scope, {}, with_account) == expected


def test_linked_ids_are_one_person_over_channels() -> None:
    links = link_index({"ada": ["telegram:7", "discord:8"]})
    discord = Origin(place=Place(channel="discord", account="1", chat="dm5", kind=ChatKind.DIRECT), sender="8")
    assert session_key(DIRECT, "per-peer", links, False) == "agent:main:direct:ada"
    assert session_key(discord, "per-peer", links, True) == "agent:main:direct:ada"
    assert session_key(DIRECT, "per-channel-peer", links, False) == "agent:main:telegram:direct:7"


def test_the_same_id_on_two_channels_is_two_people() -> None:
    other = Origin(place=Place(channel="discord", account="1", chat="7", kind=ChatKind.DIRECT), sender="7")
    assert session_key(DIRECT, "per-peer", {}, False) != session_key(other, "per-peer", {}, False)


def test_a_job_and_a_child() -> None:
    key = _below(_below(_below("agent:main", "job", "daily"), "subagent", "c1"), "subagent", "c2")
    assert key == "agent:main:job:daily:subagent:c1:subagent:c2"
    assert parse(key).children == ("c1", "c2")


def test_long_ids_are_shortened_and_stay_apart() -> None:
    one, other = (_below("agent:main", "job", "é" * 4000 + end) for end in "12")
    assert one != other
    assert len(one) <= len("agent:main:job:") + LONGEST
    assert parse(one).base == one
