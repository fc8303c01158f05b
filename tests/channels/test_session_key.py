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
    child_key,
    console_key,
    depth,
    heartbeat_key,
    http_key,
    job_key,
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


@st.composite
def made(draw: st.DrawFn, groups: Shared) -> Made:
    what = draw(st.sampled_from(["place", "place", "place", "peer", "job", "http", "console"]))
    name = draw(ID)
    match what:
        case "job":
            key, identity = job_key(name), ("job", name)
        case "http":
            key, identity = http_key(name), ("http", name)
        case "console":
            key, identity = console_key(), ("console",)
        case _:
            kind = ChatKind.DIRECT if what == "peer" else draw(KINDS)
            place = Place(channel=draw(ID), account=draw(ID), chat=name, kind=kind, thread=draw(ID))
            scope = DmScope.PER_PEER if what == "peer" else DmScope.PER_CHANNEL_PEER
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
        key, identity = child_key(key, child), (*identity, "child", child)
    if draw(st.booleans()):
        key, identity = heartbeat_key(key), (*identity, "heartbeat")
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
    base = key = session_key(origin, DmScope.PER_CHANNEL_PEER, {}, with_account, groups)
    if kind is not ChatKind.DIRECT and groups != "thread":
        thread, chat = "", f"{quote(chat, safe='@', errors='surrogatepass')}/7" if groups == "person" else chat
    for child in children:
        key = child_key(key, child)
    if beat:
        key = heartbeat_key(key)
    found = parse(key)
    assert found.base == base
    assert found.kind == ("channel" if kind is ChatKind.THREAD else kind)
    assert found.heartbeat is beat
    assert depth(key) == len(children)
    expected = (channel, account if with_account else "", chat, thread, *children)
    for value, original in zip(
        (found.channel, found.account, found.id, found.thread, *found.children), expected, strict=True
    ):
        assert value == original or ("=" in value and len(value) <= LONGEST < 3 * len(original.encode()))


@given(ID)
def test_job_and_http_names_come_back(name: str) -> None:
    for key, kind in ((job_key(name), "job"), (http_key(name), "direct")):
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
        (DIRECT, DmScope.MAIN, False, "agent:main:main"),
        (DIRECT, DmScope.MAIN, True, "agent:main:main"),
        (DIRECT, DmScope.PER_PEER, False, "agent:main:direct:telegram%3A7"),
        (DIRECT, DmScope.PER_CHANNEL_PEER, False, "agent:main:telegram:direct:7"),
        (DIRECT, DmScope.PER_CHANNEL_PEER, True, "agent:main:telegram:99:direct:7"),
        (DIRECT, DmScope.PER_ACCOUNT_CHANNEL_PEER, False, "agent:main:telegram:99:direct:7"),
        (origin(ChatKind.GROUP, "-100"), DmScope.MAIN, False, "agent:main:telegram:group:-100"),
        (origin(ChatKind.GROUP, "-100", thread="5"), DmScope.MAIN, True, "agent:main:telegram:99:group:-100:thread:5"),
        (origin(ChatKind.CHANNEL, "C1"), DmScope.PER_PEER, False, "agent:main:telegram:channel:C1"),
        (origin(ChatKind.THREAD, "C1", thread="9"), DmScope.MAIN, False, "agent:main:telegram:channel:C1:thread:9"),
        (origin(ChatKind.CONSOLE, "local"), DmScope.MAIN, False, "agent:main:console:direct:local"),
        (origin(ChatKind.API, "ci"), DmScope.MAIN, False, "agent:main:http:direct:ci"),
    ],
)
def test_the_fixed_names(made_from: Origin, scope: DmScope, with_account: bool, expected: str) -> None:
    assert session_key(made_from, scope, {}, with_account) == expected


def test_linked_ids_are_one_person_over_channels() -> None:
    links = link_index({"ada": ["telegram:7", "discord:8"]})
    discord = Origin(place=Place(channel="discord", account="1", chat="dm5", kind=ChatKind.DIRECT), sender="8")
    assert session_key(DIRECT, DmScope.PER_PEER, links, False) == "agent:main:direct:ada"
    assert session_key(discord, DmScope.PER_PEER, links, True) == "agent:main:direct:ada"
    assert session_key(DIRECT, DmScope.PER_CHANNEL_PEER, links, False) == "agent:main:telegram:direct:7"


def test_one_id_linked_to_two_people_is_refused() -> None:
    with pytest.raises(ValueError, match="telegram:7 is linked to both ada and bob"):
        link_index({"ada": ["telegram:7"], "bob": ["telegram:7"]})


def test_the_same_id_on_two_channels_is_two_people() -> None:
    other = Origin(place=Place(channel="discord", account="1", chat="7", kind=ChatKind.DIRECT), sender="7")
    assert session_key(DIRECT, DmScope.PER_PEER, {}, False) != session_key(other, DmScope.PER_PEER, {}, False)


def test_a_heartbeat_session_is_never_doubled() -> None:
    beat = heartbeat_key(session_key(DIRECT, DmScope.MAIN, {}, False))
    assert beat == "agent:main:main:heartbeat"
    assert heartbeat_key(beat) == beat
    assert heartbeat_key(child_key(beat, "a")) == child_key(beat, "a")
    assert parse(child_key(beat, "a")).heartbeat


def test_a_job_and_a_child() -> None:
    key = child_key(child_key(job_key("daily"), "c1"), "c2")
    assert key == "agent:main:job:daily:subagent:c1:subagent:c2"
    assert depth(key) == 2
    assert parse(key).children == ("c1", "c2")


def test_long_ids_are_shortened_and_stay_apart() -> None:
    one, other = job_key("é" * 4000 + "1"), job_key("é" * 4000 + "2")
    assert one != other
    assert len(one) <= len("agent:main:job:") + LONGEST
    assert parse(one).base == one
