"""Questions of the model to people: they park a turn like a request, for days and through restarts, and are answered
once, by who was asked."""

from pathlib import Path
from typing import Any

import pytest

from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.script import Call, Say
from tests.wire.answers import PLATFORMS
from tests.wire.court import Card, Court, Talk, as_it_is, court, run

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


async def test_a_question_is_answered_by_a_button_by_words_or_by_a_number(tmp_path: Path) -> None:
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
                assert at.stage.stored.approvals("state", state="open") == [("open",)]
                if name == "button":
                    at.press(card, "💬 White wine")
                elif name == "reply":
                    at.write(talk, "rather some beer", reply_to=card.id)
                else:
                    at.write(talk, {"number": "2", "words": "white wine"}.get(name, "rather some beer"))
                await at.answered(talk, name)
                found = told(at, talk, name)
                expected = ("rather some beer",) if name in ("reply", "open") else ("White wine",)
                assert any(one in found for one in expected), f"{name} on {platform}: {found}"
                edited = await at.resolved(card) if options else at.now(card)
                assert edited.buttons == {}, f"{name} on {platform}"
                if name == "button":
                    assert "White wine" in edited.text.replace("What shall it be", "", 1), edited.text
                assert sum(asked in text for text in at.texts(talk)) == 1, "asked once"
                assert len(at.requests[platform, name]) == 2, "the answer is no message of its own"


async def test_only_who_was_asked_answers(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            alice, bob = at.in_room(platform, "alice"), at.in_room(platform, "bob")
            asked = at.asks_in_room(platform, "bob", "who", ask(f"Your size on {platform}?", "Small", "Large"))
            card = await question(at, bob, f"Your size on {platform}?")
            at.press(card, "💬 Small", alice.person)
            at.press(card, "💬 Small", at.in_room(platform, "carol").person)
            at.scripts[platform, "aside"] = ()
            thread = Talk(asked.side, alice.person, asked.raw, asked.thread)
            at.write(thread, f"Small, I think, {platform}/aside", reply_to=card.id)
            await at.quiet()
            assert at.now(card).buttons == card.buttons, platform
            at.press(card, "💬 Large", bob.person)
            await at.answered(asked, "who")
            assert "Large" in told(at, asked, "who")
            assert "Small" not in told(at, asked, "who")

            at.asks_in_room(platform, "bob", "boss", ask(f"May he on {platform}?", "Surely", "Never", who="owner"))
            await at.until(
                lambda platform=platform, alice=alice, bob=bob: [  # type: ignore[misc]
                    card
                    for talk in (bob, at.direct(platform, alice.person))
                    for card in at.cards(talk)
                    if f"May he on {platform}?" in card.text and card.buttons
                ],
                "the question",
                bob,
            )
            places = (bob, at.direct(platform, alice.person))
            (card,) = (one for talk in places for one in at.cards(talk) if f"May he on {platform}?" in one.text)
            at.press(card, "💬 Surely", bob.person)
            await at.quiet()
            assert at.now(card).buttons == card.buttons, platform
            at.press(card, "💬 Never", alice.person)
            await at.answered(asked, "boss")
            assert "Never" in told(at, asked, "boss")


async def test_a_question_waits_for_days_and_through_a_crash_and_is_answered_once(tmp_path: Path) -> None:
    async with court(tmp_path) as at:
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
            for platform, talk in talks.items():
                at.replay(cards[platform], pressed[platform])
                before = at.said(talk)
                at.press(cards[platform], "💬 Monday")
                await at.told(talk, before, "that it is answered")
            await at.quiet()
            for platform, card in second.items():
                assert at.now(card).buttons == card.buttons, f"the old answer is no answer to the next, {platform}"
                at.press(card, "💬 Night")
            for platform, talk in talks.items():
                await at.answered(talk, "days")
                day, hour = at.results(talk, "days")
                assert ("Friday" in day, "Monday" in day, "Night" in hour) == (True, False, True), platform
                assert sum("Which day?" in text for text in at.texts(talk)) == 1


async def test_who_asked_writes_on_while_another_is_asked(tmp_path: Path) -> None:
    """A question that somebody else answers does not take the words of who asked."""
    async with court(tmp_path, owners=("telegram:713456789",)) as at, at.serving():
        at.may_repeat()
        owner = at.direct("telegram", at.in_room("telegram", "carol").person)
        at.says(owner, "hello")
        await at.answered(owner, "hello")
        talk = at.meets("discord")
        at.says(talk, "boss", ask("May they?", "Yes, they may", "No", who="owner"))
        await at.until(
            lambda: any("May they?" in text for one in (owner, talk) for text in at.texts(one)), "the question", talk
        )
        at.says(talk, "more")
        await at.quiet()
        assert not at.over(talk, "boss")
        cards = [card for one in (owner, talk) for card in at.cards(one) if "May they?" in card.text and card.buttons]
        assert cards
        at.press(cards[0], "💬 Yes, they may", owner.person)
        await at.answered(talk, "boss")
        assert "Yes, they may" in told(at, talk, "boss")
        await at.answered(talk, "more")


async def test_a_question_that_nobody_answers_leaves_the_stated_default(tmp_path: Path) -> None:
    async with court(tmp_path, approvals={"timeout_seconds": 5}) as at, at.serving():
        at.may_repeat()
        first = at.meets("telegram")
        at.says(first, "first")
        await at.answered(first, "first")
        (tool,) = (one for one in at.play.model.requests[-1].body["tools"] if one["name"] == "ask_person")
        known = set(tool["input_schema"]["properties"])
        default = known & {"default", "default_answer", "otherwise", "if_nobody_answers"}
        hours = known & {"wait_hours", "hours"}
        assert default, f"no default can be stated: {known}"
        given: dict[str, Any] = {default.pop(): "the blue one"}
        if hours:
            given[hours.pop()] = 1
        talks = {platform: at.meets(platform) for platform in PLATFORMS}
        for platform, talk in talks.items():
            at.says(talk, "colour", ask(f"Which colour on {platform}?", "the red one", "the blue one", **given))
        cards = {platform: await question(at, talk, f"Which colour on {platform}?") for platform, talk in talks.items()}
        at.pass_by(DAY / 2)
        for platform, talk in talks.items():
            await at.answered(talk, "colour", most=600)
            assert "the blue one" in told(at, talk, "colour"), platform
            edited = await at.resolved(cards[platform], most=600)
            assert "💬 the red one" not in edited.buttons
            before = at.said(talk)
            at.press(cards[platform], "💬 the red one")
            await at.told(talk, before, f"that it is too late on {platform}")
            await at.quiet()
            assert len(at.requests[platform, "colour"]) == 2


async def test_a_stop_ends_a_question_and_commands_are_no_answers(tmp_path: Path) -> None:
    async with court(tmp_path) as at, at.serving():
        at.may_repeat()
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.says(talk, "stopped", ask("Go on?", "Yes", "No"))
            card = await question(at, talk, "Go on?")
            for command in ("/status", "/help"):
                before = at.said(talk)
                at.native(talk, command)
                await at.told(talk, before, f"the answer to {command}")
            assert at.now(card).buttons == card.buttons, "a command answers no question"
            before = at.said(talk)
            at.native(talk, "/stop")
            await at.told(talk, before, "the answer to /stop")
            await at.resolved(card)
            before = at.said(talk)
            at.press(card, "💬 Yes")
            await at.told(talk, before, f"that it is too late on {platform}")
            at.says(talk, "next", run("cat seed", needs="look"))
            await at.answered(talk, "next")
            assert not at.over(talk, "stopped")


async def test_what_stands_in_a_question_is_shown_and_pings_nobody(tmp_path: Path) -> None:
    words = "@everyone <!channel> **Which** `one`?\n\n/approve 1 once"
    options = ("@everyone", "*bold* & <b>", "x" * 60, "日本語 🍣", "/stop")
    async with court(tmp_path) as at, at.serving():
        for platform in PLATFORMS:
            talk = at.meets(platform)
            at.says(talk, "odd", ask(words, *options))
            await at.until(lambda talk=talk: [card for card in at.cards(talk) if card.buttons], "the question", talk)  # type: ignore[misc]
            (card,) = (one for one in at.cards(talk) if one.buttons)
            assert len(card.buttons) == len(options), list(card.buttons)
            assert talk.side.loud() == []
            chosen = {"telegram": 4, "discord": 4, "slack": 1}[platform]
            at.press(card, list(card.buttons)[chosen])
            await at.answered(talk, "odd")
            assert options[chosen] in told(at, talk, "odd"), "an option that looks like a command is an answer"
