"""Who gets in, and what in a group is for the bot: pure decisions, case by case and by property."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.inbound.gate import gate
from bot.people.access import LetInBy, refusal
from bot.persistence.causes import Cause
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, Quoted
from channels.settings import AccountSection, Group
from channels.telegram.settings import TelegramAccount

BY: dict[str, LetInBy] = {"3": "code", "4": "order"}


def refused(message: InboundMessage, rules: AccountSection | None, group: Group | None = None) -> str | None:
    """Person 1 is an owner, 3 was let in by a code, 4 by the order of an owner."""
    sender = message.origin.sender
    return refusal(message, rules, group, is_owner=sender == "1", let_in_by=BY.get(sender, ""))


def said(text: str = "hello", *, kind: ChatKind = ChatKind.GROUP, thread: str = "", **fields: Any) -> InboundMessage:
    about = {name: fields.pop(name) for name in ("sender", "by_bot", "roles", "space") if name in fields}
    place = Place(channel="telegram", account="bot", chat="-5", kind=kind, thread=thread)
    message = InboundMessage(
        origin=Origin(place=place, **{"sender": "9", **about}),
        event_key="m",
        kind=InboundKind.MESSAGE,
        text=text,
        sent_at=0,
    )
    return replace(message, **fields)


def account(**settings: Any) -> AccountSection:
    return TelegramAccount.model_validate({"enabled": False, **settings})


@given(
    st.sampled_from(["pairing", "allowlist", "open", "disabled"]),
    st.sampled_from(["1", "2", "3", "4", "9", ""]),
    st.sampled_from(list(InboundKind)),
    st.booleans(),
    st.booleans(),
)
def test_direct_messages_are_let_in_by_policy_and_lists(
    policy: str, sender: str, kind: InboundKind, by_bot: bool, allow_bots: bool
) -> None:
    rules = account(dm={"policy": policy, "allow_from": ["2"]}, allow_bots=allow_bots)
    message = said(kind=ChatKind.DIRECT, sender=sender, by_bot=by_bot)
    found = refused(replace(message, kind=kind), rules)
    if by_bot and not allow_bots:
        assert found == Cause.BOT
    elif kind is InboundKind.DELETE and sender == "":
        assert found is None, "who may delete is up to the platform"
    elif policy == "disabled":
        assert found == Cause.ACCESS
    elif policy == "open" or sender in ("1", "2", "4"):
        assert found is None
    elif policy == "allowlist" or sender == "" or by_bot:
        assert found == Cause.ACCESS
    elif sender == "3":
        assert found is None
    else:
        held = (InboundKind.MESSAGE, InboundKind.COMMAND, InboundKind.EDIT, InboundKind.DELETE)
        assert found == (Cause.PAIRING if kind in held else Cause.ACCESS)
    assert refused(message, None) == Cause.ACCESS, "no account, no way in"


GROUPS = {
    "-5": {"users": [2], "roles": ["r"]},
    "s": {"users": [4], "require_mention": False, "prompt": "Be brief."},
    "-6": {},
}


@pytest.mark.parametrize(
    ("policy", "chats", "sender", "roles", "expected"),
    [
        ("allowlist", ("-5",), "2", (), None),
        ("allowlist", ("-5",), "9", ("x", "r"), None),
        ("allowlist", ("-5",), "9", ("x",), Cause.MEMBER),
        ("allowlist", ("-5",), "3", (), Cause.MEMBER),  # a code lets in to direct messages alone
        ("allowlist", ("-5",), "1", (), None),  # an owner, whatever the list says
        ("allowlist", ("-7",), "1", (), Cause.GROUP),  # but nowhere else
        ("allowlist", ("-7", "s"), "4", (), None),  # a channel of a server that is listed
        ("allowlist", ("-5", "s"), "4", (), Cause.MEMBER),  # the nearer one decides about people
        ("allowlist", ("-7", "-6"), "9", (), None),  # its id of before
        ("open", ("-7",), "9", (), None),
        ("open", ("-5",), "9", (), Cause.MEMBER),
        ("disabled", ("-5",), "1", (), Cause.GROUP),
    ],
)
def test_groups_are_let_in_by_id_and_their_people_by_id_and_role(
    policy: str, chats: tuple[str, ...], sender: str, roles: tuple[str, ...], expected: str | None
) -> None:
    rules = account(groups={"policy": policy})
    groups = rules.groups.model_copy(update={"allow": {name: Group.model_validate(of) for name, of in GROUPS.items()}})
    message = said(sender=sender, roles=roles)
    assert refused(message, rules, groups.of(*chats)) == expected


def test_what_a_channel_does_not_say_is_as_in_its_server_and_else_as_in_all_groups() -> None:
    found = account(groups={"require_mention": False, "allow": {"c": {"prompt": "a"}, "s": {"prompt": "b"}}}).groups
    assert found.of("c", "s") == Group(prompt="a", require_mention=False)
    closed = account(groups={"allow": {"c": {"require_mention": False}, "s": {"prompt": "b"}}}).groups
    assert closed.of("c", "s") == Group(prompt="b", require_mention=False)
    assert closed.of("s") == Group(prompt="b", require_mention=True)
    assert closed.of("") is None


OPEN, THREAD, SHUT, NOT_FOR_IT = True, "joined", "shut", False
MINE, THEIRS = Quoted(author="Hark", text="x", by_me=True), Quoted(author="Bob", text="x")
PATTERN: dict[str, Any] = {"groups": {"mention_patterns": [r"\bhark\b"]}}
ALWAYS: dict[str, Any] = {"groups": {"require_mention": False}}
ALONE: dict[str, Any] = {"threads": {"follow": "never"}}


@pytest.mark.parametrize(
    ("message", "settings", "expected"),
    [
        (said(), {}, SHUT),
        (said(mentioned=True), {}, OPEN),
        (said(mentioned=True, names_others=True), {}, OPEN),
        (said(replied=MINE), {}, OPEN),
        (said(replied=MINE, names_others=True), {}, OPEN),
        (said(replied=THEIRS, reply_to="7"), {}, SHUT),
        (said("Hey HARK, look"), PATTERN, OPEN),
        (said("a shark"), PATTERN, SHUT),
        (said("Hey hark, look", names_others=True), PATTERN, NOT_FOR_IT),
        (said(thread="7"), {}, THREAD),
        (said(thread="7", names_others=True), {}, NOT_FOR_IT),
        (said(thread="7"), ALONE, SHUT),
        (said(thread="7", mentioned=True), ALONE, OPEN),
        (said(), ALWAYS, "open"),
        (said(names_others=True), ALWAYS, NOT_FOR_IT),
        (said("/stop"), {}, SHUT),
        (said("/stop", mentioned=True), {}, OPEN),
        (said("!stop"), {}, OPEN),
        (said("!dance"), {}, SHUT),
        (said("/stop@other_bot"), ALWAYS, NOT_FOR_IT),
        (said("/stop@other_bot", thread="7"), {}, NOT_FOR_IT),
        (said("stop", kind=ChatKind.CHANNEL), {}, SHUT),
        (said("/stop", kind=ChatKind.CHANNEL), ALWAYS, "open"),
    ],
)
def test_the_gate(message: InboundMessage, settings: dict[str, Any], expected: bool | str) -> None:
    rules = account(**settings)
    group = Group(require_mention=rules.groups.require_mention)
    assert gate(message, rules, group, message.text in ("/stop", "!stop")) == expected


@pytest.mark.parametrize("kind", [InboundKind.COMMAND, InboundKind.BUTTON, InboundKind.EDIT, InboundKind.DELETE])
def test_what_cannot_be_meant_for_others_passes(kind: InboundKind) -> None:
    assert gate(replace(said("/stop"), kind=kind), account(), Group(require_mention=True), True) is True
