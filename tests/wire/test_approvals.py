"""Calls about which a person must decide, on all platforms: what people see, how they decide, what comes of it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.standins.discord_ledger import Rule as DiscordRule
from tests.wire.answers import PLATFORMS
from tests.wire.court import ALWAYS, DENY, ONCE, Card, Court, Talk, court, run

pytestmark = pytest.mark.xdist_group("wire-approvals")
Way = Callable[[Court, Card], object]
REASON = "not before <Friday> & only with a backup"
PASS_ON = "Deny and pass on these words"
WAYS: dict[str, tuple[str, Way]] = {
    "button-once": ("once", lambda at, card: at.press(card, ONCE)),
    "button-deny": ("denied", lambda at, card: at.press(card, DENY)),
    "native-always": ("always", lambda at, card: at.native(card.talk, f"/approve {card.name} always")),
    "typed-whole-id": ("denied", lambda at, card: at.write(card.talk, f"!approve {whole(at, card)} deny")),
    "typed-other-case": ("once", lambda at, card: at.write(card.talk, f"!approve {card.name.upper()} once")),
    "reply-yes": ("once", lambda at, card: at.write(card.talk, "Yes!", reply_to=card.id)),
    "plain-no": ("denied", lambda at, card: at.write(card.talk, "👎")),
    "reply-other": ("denied", lambda at, card: at.write(card.talk, REASON, reply_to=card.id)),
}


def whole(at: Court, card: Card) -> str:
    """Return the whole id of a request."""
    (found,) = (one for (one,) in at.stage.stored.approvals("approval_id") if one.startswith(card.name.lower()))
    return str(found)


def names(at: Court, talk: Talk, text: str) -> bool:
    """Return whether a text names who speaks in a conversation."""
    return any(one.lower() in text.lower() for one in at.named_as(talk.person))


async def refused(at: Court, talk: Talk, what: str) -> str:
    """Type a command that decides nothing; returns the answer."""
    before = at.said(talk)
    at.native(talk, what)
    return await at.told(talk, before, f"that {what!r} decides nothing on {talk.platform}")


async def late(at: Court, card: Card, label: str) -> None:
    """Press a button that was there before, and be told that it is too late."""
    before = at.said(card.talk)
    at.press(card, label)
    assert "over " not in await at.told(card.talk, before, f"that {label} is too late on {card.talk.platform}")


async def test_every_way_to_decide_decides_once_and_is_shown_where_it_was_asked(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        talks = {(platform, name): at.meets(platform) for platform in PLATFORMS for name in WAYS}
        for (_, name), talk in talks.items():
            at.asks(talk, name)
        cards = {key: await at.card(talk, key[1]) for key, talk in talks.items()}
        for (platform, name), card in cards.items():
            command = at.tally(card.talk, name)
            assert (command in card.text, list(card.buttons)) == (True, [ONCE, ALWAYS, DENY]), (platform, name)
            assert (len(whole(at, card).replace("-", "")), at.ran(card.talk, name)) == (32, 0), "a UUID"
            if platform == "telegram":
                marks = [one for one in card.raw["entities"] if one["type"] in ("pre", "code")]
                assert any(one["length"] >= len(command) for one in marks), "a command is shown as code"
            WAYS[name][1](at, card)
            if name == "reply-other":
                asked = await at.card(card.talk, "still waiting", ident=card.id)
                assert at.now(card).buttons == card.buttons, "nothing is decided"
                assert list(asked.buttons) == [ONCE, PASS_ON], platform
                at.press(asked, PASS_ON)
                assert (await at.resolved(asked)).buttons == {}
        for (platform, name), card in cards.items():
            talk, (verdict, _) = card.talk, WAYS[name]
            await at.answered(talk, name)
            edited = await at.resolved(card)
            where = f"{name} on {platform}: {edited.text}"
            assert (edited.buttons, at.tally(talk, name) in edited.text) == ({}, True), where
            assert names(at, talk, edited.text), where
            assert sum("May I" in text and at.tally(talk, name) in text for text in at.texts(talk)) == 1 + (
                name == "reply-other"
            ), where
            (result,) = at.results(talk, name)
            if verdict == "denied":
                assert (at.ran(talk, name), "denied" in result) == (0, True), where
                assert (REASON in result) == (name == "reply-other"), where
            else:
                assert (at.ran(talk, name), "'seed' -> 'tally/" in result) == (1, True), where
            assert len(at.requests[platform, name]) == 2, "words that decide are no message of their own"
        expected = Counter(WAYS[name][0] for _ in PLATFORMS for name in WAYS)
        assert Counter(state for (state,) in at.stage.stored.approvals("state")) == expected


async def test_in_a_room_those_decide_who_may_and_others_learn_nothing(tmp_path: Path) -> None:
    async with court(tmp_path) as at:
        at.may_repeat()
        async with at.serving():
            for platform in PLATFORMS:
                carol, sign = at.in_room(platform, "carol"), "/" if platform == "telegram" else "!"
                bob = at.asks_in_room(platform, "bob", "guarded", run(at.tally(at.in_room(platform, "bob"), "guarded")))
                alice = Talk(bob.side, at.in_room(platform, "alice").person, bob.raw, bob.thread)
                card = await at.card(bob, "guarded")
                before = at.said(bob)
                for label in (ONCE, ALWAYS, DENY):
                    at.press(card, label, bob.person)
                    at.press(card, label, carol.person)
                await at.told(bob, before, "that he may not")
                for words in (f"{card.name} once", f"{whole(at, card)} always"):
                    at.write(bob, f"!approve {words}")
                    at.write(carol, f"!approve {words}")
                at.native(bob, f"/approve {card.name} once")
                at.scripts[platform, "meanwhile"] = ()
                at.write(bob, f"no, {platform}/meanwhile", reply_to=card.id)
                private = at.meets(platform)
                at.says(private, "private", run("touch confidential"))
                hidden = await at.card(private, "confidential")
                before = at.said(bob)
                at.write(alice, "!approvals")
                listed = await at.told(bob, before)
                assert "confidential" not in listed, "what is asked privately is not listed in a room"
                at.press(hidden, DENY)
                await at.quiet()
                for one in (at.direct(platform, carol.person), at.meets(platform, owner=False)):
                    for command in (f"/approve {whole(at, card)} once", "/status", "/tools"):
                        assert "guarded" not in await refused(at, one, command), f"{command} on {platform}"
                assert (at.now(card).buttons, at.ran(bob, "guarded")) == (card.buttons, 0), platform
                at.write(alice, f"{sign}approve {card.name} once")
                await at.answered(bob, "guarded")
                assert names(at, alice, (await at.resolved(card)).text)
                await at.answered(bob, "meanwhile")
                assert at.ran(bob, "guarded") == 1
                bob = at.asks_in_room(platform, "bob", "second", run(at.tally(bob, "second")))
                card = await at.card(bob, "second")
                if platform == "slack":  # a thread has no threads, so that nothing tells what is a reply to the request
                    at.press(card, DENY, alice.person)
                else:
                    at.write(alice, "no", reply_to=card.id)
                await at.answered(bob, "second")
                assert ("denied" in at.results(bob, "second")[0], at.ran(bob, "second")) == (True, 0), platform
        at.stage.changes["approvals"] = {"approvers": [f"{name}:{at.side(name).bob}" for name in PLATFORMS]}
        async with at.serving():
            for platform in PLATFORMS:
                alice, bob = at.in_room(platform, "alice"), at.in_room(platform, "bob")
                at.asks_in_room(platform, "alice", "named", run(at.tally(alice, "named")))
                card = await at.card(alice, f"{platform}-named")
                before = at.said(alice)
                at.press(card, ONCE, alice.person)
                await at.told(alice, before, "that she may not")
                assert at.now(card).buttons == card.buttons, "named approvers take the place of owners"
                at.press(card, ONCE, bob.person)
                await at.answered(alice, "named")
                assert names(at, bob, (await at.resolved(card)).text)
                assert at.ran(alice, "named") == 1


async def test_clicks_that_come_twice_late_at_once_and_after_a_crash(tmp_path: Path) -> None:
    async with court(tmp_path) as at:
        at.may_repeat()
        at.side("discord").server.tolerate(DiscordRule.UNANSWERED_INTERACTION)
        talks = {platform: at.meets(platform) for platform in PLATFORMS}
        later = {platform: at.meets(platform) for platform in PLATFORMS}
        async with at.serving():
            for platform in PLATFORMS:
                at.asks(talks[platform], "crash")
                at.asks(later[platform], "late")
            cards = {platform: await at.card(talks[platform], "crash") for platform in PLATFORMS}
            others = {platform: await at.card(later[platform], "late") for platform in PLATFORMS}
            pressed = {platform: at.press(cards[platform], ONCE) for platform in PLATFORMS}
            for platform, talk in talks.items():
                at.replay(cards[platform], pressed[platform])
                await at.answered(talk, "crash")
                await at.resolved(cards[platform])
            for platform in PLATFORMS:
                talk, other = at.meets(platform), at.meets(platform)
                at.asks(talk, "race")
                card = await at.card(talk, "race")
                said = at.said(other)
                for label in (ONCE, ONCE, DENY):
                    at.press(card, label)
                at.native(other, f"/approve {whole(at, card)} deny")
                await at.answered(talk, "race")
                edited = await at.resolved(card)
                await at.told(other, said, "an answer")
                ran = at.ran(talk, "race")
                assert names(at, talk if ran else other, edited.text), f"{ran}: {edited.text}"
                state = ("once" if ran else "denied",)
                assert at.stage.stored.approvals("state", approval_id=whole(at, card)) == [state]
            await at.until(lambda: not at.stage.stored.open_deliveries(), "deliveries")
            at.die()
        async with at.serving():
            for platform, card in cards.items():
                at.replay(card, pressed[platform])
                await late(at, card, ALWAYS)
                at.press(others[platform], ONCE)
            for platform, talk in later.items():
                await at.answered(talk, "late")
                assert not (await at.resolved(others[platform])).buttons
                await late(at, others[platform], DENY)
            await at.quiet()
            for platform, talk in talks.items():
                assert (at.ran(talk, "crash"), at.ran(later[platform], "late")) == (1, 1), platform
                at.says(talk, "again", run(at.tally(talk, "crash")))
                await at.card(talk, "crash", ident=cards[platform].id)  # a late *always* allows nothing
