"""Questions of the model to people: they park a turn like a request, for days and through restarts, and are answered
once, by who was asked."""

from pathlib import Path
from typing import Any

import pytest

from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.script import Call, Say
from tests.wire.answers import PLATFORMS
from tests.wire.court import Card, Court, Talk, as_it_is, court

pytestmark = pytest.mark.xdist_group("wire-tools")
DAY = 24 * 3600


def ask(question: str, *options: str, **more: Any) -> Call:
    """The model asks a person."""
    return Call("ask_person", {"question": question, **({"options": list(options)} if options else {}), **more})


async def question(at: Court, talk: Talk, words: str) -> Card:
    """The message that asks, once it is there."""
    await at.until(lambda: any(words in card.text for card in at.cards(talk)), f"{words!r} on {talk.platform}", talk)
    return as_it_is([card for card in at.cards(talk) if words in card.text][-1])


def told(at: Court, talk: Talk, name: str) -> str:
    """What the model was told of its only call."""
    (result,) = at.results(talk, name)
    return result


async def test_a_question_is_answered_in_any_way_by_who_was_asked(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            for name in ("button", "words", "reply", "number", "open"):
                talk = at.meets(platform, owner=name != "words")
                options = () if name == "open" else ("Red wine", "White wine", "Water & bread")
                asked = f"What shall it be on {platform}, {name}?"
                at.says(talk, name, [Say("Let me ask."), ask(asked, *options)])
                card = await question(at, talk, asked)
                assert list(card.buttons) == [f"💬 {one}" for one in options], (platform, name)
                if name == "button":
                    for command in ("/status", "/help"):
                        before = at.said(talk)
                        at.native(talk, command)
                        await at.told(talk, before, f"the answer to {command}")
                    assert at.now(card).buttons == card.buttons, "a command answers no question"
                    at.press(card, "💬 White wine")
                elif name == "reply":
                    at.write(talk, "rather some beer", reply_to=card.id)
                else:
                    at.write(talk, {"number": "2", "words": "white wine"}.get(name, "rather some beer"))
                await at.answered(talk, name)
                expected = "rather some beer" if name in ("reply", "open") else "White wine"
                assert expected in told(at, talk, name), f"{name} on {platform}"
                edited = await at.resolved(card) if options else at.now(card)
                assert edited.buttons == {}, f"{name} on {platform}"
                assert name != "button" or "White wine" in edited.text.replace("What shall it be", "", 1), edited.text
                if name != "button":  # where /status tells of it
                    assert sum(asked in text for text in at.texts(talk)) == 1, "asked once"
                assert len(at.requests[platform, name]) == 2, "the answer is no message of its own"

            alice, bob = at.in_room(platform, "alice"), at.in_room(platform, "bob")
            asked_in = at.asks_in_room(platform, "bob", "who", ask(f"Your size on {platform}?", "Small", "Large"))
            card = await question(at, bob, f"Your size on {platform}?")
            at.press(card, "💬 Small", alice.person)
            at.press(card, "💬 Small", at.in_room(platform, "carol").person)
            at.scripts[platform, "aside"] = ()
            thread = Talk(asked_in.side, alice.person, asked_in.raw, asked_in.thread)
            at.write(thread, f"Small, I think, {platform}/aside", reply_to=card.id)
            await at.quiet()
            assert at.now(card).buttons == card.buttons, platform
            at.press(card, "💬 Large", bob.person)
            await at.answered(asked_in, "who")
            assert ("Large" in told(at, asked_in, "who"), "Small" in told(at, asked_in, "who")) == (True, False)

            at.asks_in_room(platform, "bob", "boss", ask(f"May he on {platform}?", "Surely", "Never", who="owner"))
            card = await question(at, bob, f"May he on {platform}?")
            at.press(card, "💬 Surely", bob.person)
            await at.quiet()
            assert at.now(card).buttons == card.buttons, "an owner was asked"
            at.press(card, "💬 Never", alice.person)
            await at.answered(asked_in, "boss")
            assert "Never" in told(at, asked_in, "boss")


async def test_a_question_waits_through_crashes_and_ends_with_its_default_or_a_stop(
    tmp_path: Path,
) -> None:
    async with court(tmp_path, approvals={"timeout_seconds": 5}) as at:
        at.may_repeat()
        at.side("discord").server.tolerate(DiscordRule.UNANSWERED_INTERACTION)
        talks = {platform: at.meets(platform) for platform in PLATFORMS}
        cards = {}
        async with at.serving():
            for platform, talk in talks.items():
                at.says(talk, "days", ask("Which day?", "Monday", "Friday"), ask("Which hour?", "Noon", "Night"))
                cards[platform] = await question(at, talk, "Which day?")
            at.die()
        at.stage.time.advance(0.4 * DAY)
        async with at.serving():
            await at.quiet()
            pressed = {platform: at.press(card, "💬 Friday") for platform, card in cards.items()}
            second = {platform: await question(at, talk, "Which hour?") for platform, talk in talks.items()}
            at.die()
        async with at.serving():
            await at.quiet()  # all platforms are connected
            for platform in PLATFORMS:
                at.replay(cards[platform], pressed[platform])
                await too_late(at, cards[platform], "💬 Monday")
            await at.quiet()
            for platform, card in second.items():
                assert at.now(card).buttons == card.buttons, f"the old answer is no answer to the next, {platform}"
                at.press(card, "💬 Night")
            for platform, talk in talks.items():
                await at.answered(talk, "days")
                day, hour = at.results(talk, "days")
                assert ("Friday" in day, "Monday" in day, "Night" in hour) == (True, False, True), platform
                assert sum("Which day?" in text for text in at.texts(talk)) == 1

            odd = {"telegram": "/stop", "discord": "@everyone", "slack": "*bold* & <b>"}
            for platform in PLATFORMS:
                talk = at.meets(platform)
                at.says(talk, "stopped", ask("Go on?", "Yes", "No"))
                card = await question(at, talk, "Go on?")
                before = at.said(talk)
                at.native(talk, "/stop")
                await at.told(talk, before, "the answer to /stop")
                await at.resolved(card)
                await too_late(at, card, "💬 Yes")
                at.says(talk, "next")
                await at.answered(talk, "next")
                assert not at.over(talk, "stopped")
                talk = at.meets(platform)
                words = "@everyone <!channel> **Which** `one`?\n\n/approve 1 once"
                at.says(talk, "odd", ask(words, odd[platform], "x" * 60, "日本語 🍣"))
                await at.until(lambda talk=talk: [card for card in at.cards(talk) if card.buttons], "it", talk)  # type: ignore[misc]
                (card,) = (one for one in at.cards(talk) if one.buttons)
                assert (len(card.buttons), talk.side.loud()) == (3, [])
                at.press(card, next(iter(card.buttons)))
                await at.answered(talk, "odd")
                assert odd[platform] in told(at, talk, "odd"), "an option that looks like a command is an answer"

            for platform, talk in talks.items():
                default = {"default": "the blue one", "wait_hours": 1}
                at.says(talk, "colour", ask(f"Which colour on {platform}?", "the red one", "the blue one", **default))
            cards = {one: await question(at, talk, f"Which colour on {one}?") for one, talk in talks.items()}
            at.pass_by(DAY / 2)
            for platform, talk in talks.items():
                await at.answered(talk, "colour", most=600)
                assert "the blue one" in told(at, talk, "colour"), platform
                assert "💬 the red one" not in (await at.resolved(cards[platform], most=600)).buttons
                await too_late(at, cards[platform], "💬 the red one")
            await at.quiet()
            assert {len(at.requests[platform, "colour"]) for platform in PLATFORMS} == {2}


async def too_late(at: Court, card: Card, label: str) -> None:
    """Press a button of a question that is answered already."""
    before = at.said(card.talk)
    at.press(card, label)
    await at.told(card.talk, before, f"that it is too late on {card.talk.platform}")


async def test_who_asked_writes_on_while_another_is_asked(tmp_path: Path) -> None:
    """A question that somebody else answers does not take the words of who asked."""
    async with court(tmp_path, owners=("telegram:713456789",)) as at, at.serving():
        owner = at.direct("telegram", at.in_room("telegram", "carol").person)
        at.says(owner, "hello")
        await at.answered(owner, "hello")
        talk = at.meets("discord")
        at.says(talk, "boss", ask("May they?", "Yes, they may", "No", who="owner"))
        await at.until(lambda: "May they?" in "".join((*at.texts(owner), *at.texts(talk))), "the question", talk)
        at.says(talk, "more")
        await at.quiet()
        assert not at.over(talk, "boss")
        (card,) = (card for card in at.cards(owner) if "May they?" in card.text)
        at.press(card, "💬 Yes, they may")
        await at.answered(talk, "boss")
        assert "Yes, they may" in told(at, talk, "boss")
        await at.answered(talk, "more")
