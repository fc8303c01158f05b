"""Decisions that are none: clicks that come twice, late, from others or about something else."""

import asyncio
from pathlib import Path

import pytest

from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.telegram_ledger import Rule as TelegramRule
from tests.wire.answers import PLATFORMS
from tests.wire.court import ALWAYS, DENY, ONCE, Court, Talk, court, run
from tests.wire.platforms import Side
from tests.wire.test_approvals import names, whole

pytestmark = pytest.mark.xdist_group("wire-approvals")
NOBODY = "00000000-0000-4000-8000-000000000000"


def two_of_them(side: Side) -> dict[str, object]:
    """In the room only Alice and Bob are heard."""
    return {"users": [side.alice, side.bob]}


async def refused(at: Court, talk: Talk, what: str) -> str:
    """Type a command that decides nothing; what they are told."""
    before = at.said(talk)
    at.native(talk, what)
    return await at.told(talk, before, f"that {what!r} decides nothing on {talk.platform}")


async def test_a_click_that_comes_again_or_another_one_behind_it_changes_nothing(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        at.side("discord").server.tolerate(DiscordRule.UNANSWERED_INTERACTION)
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.asks(talk, "once")
            card = await at.card(talk, "once")
            pressed = at.press(card, ONCE)
            at.replay(card, pressed)
            await at.answered(talk, "once")
            edited = await at.resolved(card)
            at.replay(card, pressed)
            for label in (ALWAYS, DENY, ONCE):
                before = at.said(talk)
                at.press(card, label)
                assert "over " not in await at.told(talk, before, f"that {label} is too late on {platform}")
            for words in (f"/approve {card.name} always", f"/approve {whole(at, card)} deny"):
                await refused(at, talk, words)
            await at.quiet()
            assert at.now(card).text == edited.text, "what was decided stands there"
            assert at.ran(talk, "once") == 1
            at.says(talk, "again", run(at.tally(talk, "once")))
            card = await at.card(talk, "once", ident=card.id)
            at.press(card, DENY)
            await at.answered(talk, "again")
            assert at.ran(talk, "once") == 1, "a late *always* allows nothing"
        assert set(at.stage.stored.approvals("state")) == {("once",), ("denied",)}


async def test_who_may_not_decide_decides_nothing(tmp_path: Path) -> None:
    async with court(tmp_path, group=two_of_them) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            alice, bob, carol = (at.in_room(platform, who) for who in ("alice", "bob", "carol"))
            asked = at.asks_in_room(platform, "bob", "guarded", run(at.tally(bob, "guarded")))
            card = await at.card(bob, "guarded")
            before = at.said(bob)
            for label in (ONCE, ALWAYS, DENY):
                at.press(card, label, bob.person)
                at.press(card, label, carol.person)
            await at.told(bob, before, "that he may not")
            for who in (asked, carol):
                for words in ("once", "always", "deny"):
                    at.write(who, f"!approve {card.name} {words}")
                    at.write(who, f"!approve {whole(at, card)} {words}")
            at.native(bob, f"/approve {card.name} once")
            outside = at.direct(platform, carol.person)
            stranger = at.meets(platform, owner=False)
            for one in (outside, stranger):
                told = await refused(at, one, f"/approve {whole(at, card)} once")
                assert "guarded" not in told, "nobody learns of a command who may not decide about it"
            await at.quiet()
            assert at.now(card).buttons == card.buttons, platform
            assert (at.ran(bob, "guarded"), at.stage.stored.approvals(state="open") != []) == (0, True)
            at.press(card, ONCE, alice.person)
            await at.answered(bob, "guarded")
            assert names(at, alice, (await at.resolved(card)).text)
            assert at.ran(bob, "guarded") == 1


async def test_of_two_who_decide_at_once_one_does(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            for turn in range(3):
                name = f"race-{turn}"
                talk, other = at.meets(platform), at.meets(platform)
                at.asks(talk, name)
                card = await at.card(talk, name)
                said = at.said(other)
                at.press(card, ONCE)
                at.native(other, f"/approve {whole(at, card)} deny")
                at.press(card, ONCE)
                at.native(other, f"/approve {whole(at, card)} deny")
                await at.answered(talk, name)
                edited = await at.resolved(card)
                await at.told(other, said, "an answer")
                ran = at.ran(talk, name)
                assert ran in (0, 1)
                assert names(at, talk if ran else other, edited.text), f"{ran}: {edited.text}"
                (state,) = at.stage.stored.approvals("state", approval_id=whole(at, card))
                assert state == ("once" if ran else "denied",)


async def test_what_is_typed_names_one_open_request_or_nothing_happens(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        talks = [at.meets(PLATFORMS[number % 3]) for number in range(18)]
        for number, talk in enumerate(talks):
            at.asks(talk, f"many-{number}")
        cards = [await at.card(talk, f"many-{number}") for number, talk in enumerate(talks)]
        ids = [whole(at, card) for card in cards]
        shared = next(one[0] for one in ids if sum(other[0] == one[0] for other in ids) > 1)
        other = at.meets("discord")
        for who in (talks[0], other, talks[2]):
            for words in (
                f"/approve {shared} once",
                f"/approve {NOBODY} once",
                f"/approve {ids[0]}0 once",
                f"/approve {ids[0]} maybe",
                f"/approve {ids[0][1:9]} once",
            ):
                if who.platform == "discord" and words.endswith("maybe"):
                    continue  # there it may be chosen only
                await refused(at, who, words)
        for words in ("% once", "_ once", "* once", "'' once", "once", "", f"{ids[0]}"):
            before = at.said(talks[0])
            at.write(talks[0], f"!approve {words}".rstrip())
            await at.told(talks[0], before, f"that {words!r} decides nothing")
        assert at.stage.stored.approvals("state") == [("open",)] * 18
        assert not [
            at.ran(talk, f"many-{number}") for number, talk in enumerate(talks) if at.ran(talk, f"many-{number}")
        ]
        for number, card in enumerate(cards):  # some other person may decide all of them
            at.native(other, f"/approve {card.name.upper() if number % 2 else whole(at, card)} once")
        for number, talk in enumerate(talks):
            await at.answered(talk, f"many-{number}")
            assert at.ran(talk, f"many-{number}") == 1
        for words in (f"/approve {ids[0]} once", f"/approve {ids[1]} deny"):
            await refused(at, other, words)


async def test_a_request_is_decided_behind_a_crash_and_a_click_counts_once(tmp_path: Path) -> None:
    async with court(tmp_path) as at:
        at.may_repeat()
        at.side("discord").server.tolerate(DiscordRule.UNANSWERED_INTERACTION)
        talks = {platform: at.meets(platform) for platform in PLATFORMS}
        late = {platform: at.meets(platform) for platform in PLATFORMS}
        async with at.serving():
            for platform in PLATFORMS:
                at.asks(talks[platform], "crash")
                at.asks(late[platform], "late")
            cards = {platform: await at.card(talks[platform], "crash") for platform in PLATFORMS}
            others = {platform: await at.card(late[platform], "late") for platform in PLATFORMS}
            pressed = {platform: at.press(cards[platform], ONCE) for platform in PLATFORMS}
            for platform in PLATFORMS:
                await at.answered(talks[platform], "crash")
                await at.resolved(cards[platform])
            await at.until(lambda: not at.stage.stored.open_deliveries(), "deliveries")
            at.die()
        async with at.serving():
            for platform in PLATFORMS:
                at.replay(cards[platform], pressed[platform])
                before = at.said(talks[platform])
                at.press(cards[platform], ALWAYS)
                await at.told(talks[platform], before, f"that it is too late on {platform}")
                at.press(others[platform], ONCE)
            for platform in PLATFORMS:
                await at.answered(late[platform], "late")
                assert not (await at.resolved(others[platform])).buttons
            await at.quiet()
        for platform in PLATFORMS:
            assert (at.ran(talks[platform], "crash"), at.ran(late[platform], "late")) == (1, 1), platform
        assert set(at.stage.stored.approvals("state")) == {("once",)}


@pytest.mark.parametrize("label", [ONCE, DENY])
async def test_a_decision_stands_however_the_process_dies_behind_it(label: str, tmp_path: Path) -> None:
    """It dies at each commit behind the click: the call runs once or not at all, and the person always learns which."""
    async with court(tmp_path, alone=True) as at:
        at.may_repeat()
        at.side("telegram").server.tolerate(TelegramRule.UNANSWERED_CLICK)  # by who was dead
        for commit in range(1, 9):
            name = f"die-{label.split()[0].lower()}-{commit}"
            talk = at.meets("telegram")
            async with at.serving():
                at.asks(talk, name)
                card = await at.card(talk, name)
                await at.until(lambda: not at.stage.stored.open_deliveries(), "deliveries")
                at.stage.commits, at.stage.die_at = 0, commit
                at.stage.die_when = "before" if commit % 2 else "after"
                at.press(card, label)
                await at.until(lambda talk=talk, name=name: at.stage.dead or at.over(talk, name), "its end")  # type: ignore[misc]
            async with at.serving():
                if not at.stage.stored.approvals(state="open"):
                    await at.answered(talk, name, most=60)
                else:  # the click died with the process, before the platform was told that it had arrived
                    at.press(card, label)
                    await at.answered(talk, name, most=60)
                edited = await at.resolved(card, most=60)
            (told,) = at.results(talk, name)
            ran = at.ran(talk, name)
            assert ran <= (label == ONCE), name
            assert edited.buttons == {}
            if label == DENY:
                assert "denied" in told, told
            elif ran:
                assert "'seed' -> " in told or "interrupt" in told.lower() or "unknown" in told.lower(), told
            else:
                assert "'seed' -> " not in told, told


async def test_many_clicks_at_once_are_one_decision(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.asks(talk, "storm")
            card = await at.card(talk, "storm")
            for _ in range(4):
                for label in (ONCE, ONCE, DENY):
                    at.press(card, label)
                await asyncio.sleep(0)
            await at.answered(talk, "storm")
            assert at.ran(talk, "storm") == 1, "the first was to allow it once"
        assert at.stage.stored.approvals("state") == [("once",)] * 3


async def test_who_may_not_decide_learns_nothing_of_what_others_are_asked(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        talks = [at.meets(PLATFORMS[number % 3]) for number in range(18)]
        for number, talk in enumerate(talks):
            at.says(talk, f"private-{number}", run(f"touch confidential-{number}"))
        for talk in talks:
            await at.card(talk, "confidential")
        for platform in PLATFORMS:
            other = at.meets(platform, owner=False)
            at.asks_in_room(platform, "bob", "hello")
            room = at.in_room(platform, "bob")
            for who in (other, room):
                for words in ("/whoami", "/tools", "/status"):
                    before = at.said(who)
                    if who is room:
                        at.write(who, words.replace("/", "!"))
                    else:
                        at.native(who, words)
                    told = await at.told(who, before, f"an answer to {words}")
                    assert "confidential" not in told, f"{words} on {platform}: {told}"
            owner = at.in_room(platform, "alice")
            before = at.said(owner)
            at.write(owner, "!approvals")
            assert "confidential" not in await at.told(owner, before), "what is asked privately is listed in a room"
        assert at.stage.stored.approvals("state") == [("open",)] * 18
