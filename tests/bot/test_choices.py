"""Messages with buttons: a choice is made once, by whoever presses first, and then stands where the buttons were."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bot.commands.registry import Arguments, Call, Command, Effect, Say
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Action, Button
from tests.service import Hark, running

BUTTONS = (Button("Tea", "/drink tea"), Button("Coffee", "/drink coffee"), Button("Surprise", "/drink"))


class Drink(Arguments):
    """What to make."""

    what: str


@dataclass
class Bar:
    """Commands that offer drinks and make them."""

    made: list[str] = field(default_factory=list)
    words: str = "What will you have? /drink tea, or /drink coffee."
    buttons: tuple[Button, ...] = BUTTONS

    def commands(self) -> tuple[Command, ...]:
        async def offer(call: Call, _: Arguments) -> Effect:
            return Say(self.words, self.buttons)

        async def drink(call: Call, arguments: Arguments) -> Effect:
            assert isinstance(arguments, Drink)
            self.made.append(arguments.what)
            return Say(f"Here is your {arguments.what}.")

        return (
            Command(name="offer", help="Offers.", run=offer),
            Command(name="drink", help="Makes one.", run=drink, arguments=Drink),
        )


def press(hark: Hark, sends: str, message_id: str, key: str, **fields: Any) -> InboundMessage:
    place = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)
    return InboundMessage(
        origin=Origin(place=place, sender="1"),
        event_key=f"b:{key}",
        kind=InboundKind.BUTTON,
        text=sends,
        sent_at=hark.time.now(),
        reply_to=message_id,
        **fields,
    )


async def test_a_choice_is_offered_made_and_shown(tmp_path: Path) -> None:
    bar = Bar()
    async with running(tmp_path, commands=bar.commands()) as hark:
        await hark.write("/offer")
        await hark.until_texts(1)
        assert hark.channel.sent[0].buttons == BUTTONS
        await hark.accept(press(hark, "/drink tea", "1", "first"))
        await hark.until_texts(3)
    edit, answer = hark.channel.sent[1:]
    assert (edit.action, edit.target, edit.buttons) == (Action.EDIT, "1", ())
    assert edit.body == f"{bar.words}\n\n✓ **Tea**"
    assert answer.body == "Here is your tea."


async def test_only_the_first_press_counts_and_the_same_click_is_one(tmp_path: Path) -> None:
    bar = Bar()
    async with running(tmp_path, commands=bar.commands()) as hark:
        await hark.write("/offer")
        await hark.until_texts(1)
        tea, coffee = press(hark, "/drink tea", "1", "tea"), press(hark, "/drink coffee", "1", "coffee")
        await hark.accept(tea, coffee)
        await hark.accept(tea)
        await hark.until(lambda: not hark.stored.messages("seq", kind="button", state="waiting"), "all presses")
        await hark.delivered()
    (answer,) = [sent.body for sent in hark.channel.sent][2:]
    assert answer in ("Here is your tea.", "Here is your coffee.")


async def test_a_choice_survives_a_restart(tmp_path: Path) -> None:
    bar = Bar()
    async with running(tmp_path, commands=bar.commands()) as hark:
        await hark.write("/offer")
        await hark.until_texts(1)
        await hark.delivered()
    async with running(tmp_path, commands=bar.commands()) as hark:
        await hark.accept(press(hark, "/drink coffee", "1", "late"))
        await hark.until_texts(2)
    assert hark.channel.sent[0].action is Action.EDIT


async def test_a_button_that_is_not_understood_keeps_its_message(tmp_path: Path) -> None:
    bar = Bar(buttons=(Button("Tea", "/drink"),))
    async with running(tmp_path, commands=bar.commands()) as hark:
        await hark.write("/offer")
        await hark.until_texts(1)
        await hark.accept(press(hark, "/drink", "1", "what"))
        await hark.until_texts(2)
    assert hark.channel.sent[1].action is Action.SEND
    assert bar.made == []


async def test_a_long_offer_has_its_buttons_on_a_message_of_their_own(tmp_path: Path) -> None:
    bar = Bar()
    async with running(tmp_path, commands=bar.commands()) as hark:
        hark.channel.rendered = lambda text: (text[:20], text[20:]) if len(text) > 40 else (text,)
        await hark.write("/offer")
        await hark.until_texts(3)
        await hark.accept(press(hark, "/drink tea", "3", "first"))
        await hark.until_texts(5)
    assert [bool(sent.buttons) for sent in hark.channel.sent] == [False, False, True, False, False]
    assert hark.channel.sent[3].body.endswith("✓ **Tea**")


async def test_a_native_command_is_answered_by_its_handle(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.write("/start", kind=InboundKind.COMMAND, respond="token")
        await hark.until_texts(1)
    assert hark.channel.sent[0].respond == "token"


@pytest.mark.parametrize("apart", [False, True])
async def test_a_long_answer_to_a_native_command_stays_with_its_person_where_it_can(
    tmp_path: Path, apart: bool
) -> None:
    bar = Bar()
    async with running(tmp_path, commands=bar.commands()) as hark:
        hark.channel.capabilities = replace(hark.channel.capabilities, commands_apart=apart)
        hark.channel.rendered = lambda text: (text[:20], text[20:]) if len(text) > 40 else (text,)
        await hark.write("/offer", kind=InboundKind.COMMAND, respond="token")
        await hark.until_texts(3)
    assert [one.respond for one in hark.channel.sent] == ["token", *["token" if apart else ""] * 2]
