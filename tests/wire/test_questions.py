"""Questions of the model to people: they park a turn like a request, for days and through restarts, and are answered
once, by who was asked."""

from pathlib import Path
from typing import Any

import pytest

from tests.standins.script import Call, Say
from tests.wire.answers import PLATFORMS
from tests.wire.court import Card, Court, Talk, as_it_is, court

pytestmark = pytest.mark.xdist_group("wire-tools")


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
