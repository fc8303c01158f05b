"""Exchanges that are taken back: no model is shown them any more, and what they had sent is gone or struck out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.context import LEFT_OUT
from agent.models.base import ModelRequest
from bot.persistence.causes import Cause
from channels.message import ChatKind, Place
from channels.outgoing import Action, Delivery, NotSent, Refused, SendResult, Sent, Unknown
from channels.session_key import console_key, http_key
from tests.bot.inbound.test_edits import delete, edit
from tests.bot.test_choices import press
from tests.service import Hark, running
from tests.standins.script import Call, Hang
from tests.stored import Like
from tests.watch import lanes_idle


@contextlib.asynccontextmanager
async def served(home: Path, **given: Any) -> AsyncIterator[Hark]:
    """A service whose model says "ok" where a test wants nothing else."""
    async with running(home, **given) as hark:
        hark.model.default = "ok"
        yield hark


@pytest.fixture
async def hark(tmp_path: Path) -> AsyncIterator[Hark]:
    """A service whose model says "ok" where a test wants nothing else."""
    async with served(tmp_path) as made:
        yield made


def standing(hark: Hark, chat: str = "1") -> list[str]:
    """What a chat shows of the bot, as its messages are now."""
    shown: dict[str, str] = {}
    for number, one in enumerate(hark.channel.sent, 1):
        if one.place.chat != chat:
            continue
        if one.action is Action.DELETE:
            shown.pop(one.target, None)
        elif one.action is Action.EDIT:
            shown[one.target] = one.body
        elif one.action is not Action.REACT:
            shown[str(number)] = one.body
    return list(shown.values())


async def order(hark: Hark, text: str, sender: str = "1", **fields: object) -> str:
    """What a command is answered, once all is delivered."""
    before = len(hark.channel.sent)
    await hark.write(text, sender=sender, **fields)
    await hark.until(lambda: len(hark.channel.sent) > before, f"the answer to {text}")
    await hark.delivered()
    return hark.channel.sent[-1].body


def words(request: ModelRequest) -> str:
    return repr(request)


async def test_an_exchange_is_gone_from_the_chat_and_from_what_the_model_is_shown(hark: Hark) -> None:
    await hark.say("the first question")
    hark.model.add(Call("write", {"path": "canary-path.md", "content": "canary-content"}))
    hark.model.add("canary-answer")
    await hark.say("canary-question")
    said = await order(hark, "/undo")
    assert said.startswith("I have taken back “canary-question”.\n1 message of mine will be gone.")
    assert said.endswith("This stays as it is:\n- wrote canary-path.md")
    assert standing(hark) == ["ok", said]
    await hark.say("the next question")
    assert "the first question" in words(hark.model.requests[-1])
    assert "canary" not in words(hark.model.requests[-1])
    assert [row[0] for row in hark.stored.entries("hidden")].count(1) == 5  # four lines, and the mark behind them


async def test_nothing_of_it_is_in_a_summary_or_mentioned_when_its_message_is_edited(hark: Hark) -> None:
    for number in range(4):
        await hark.say(f"question {number} " + "long " * 200)
    asked = hark.message("canary-question")
    hark.model.add(Call("write", {"path": "canary-path.md", "content": "canary-content"}))
    hark.model.add("canary-answer")
    await hark.accept(asked)
    await hark.until(lambda: "canary-answer" in hark.channel.texts(), "the answer")
    await order(hark, "/undo")
    await hark.accept(edit(asked, "canary-edit"))
    assert "summed up" in await order(hark, "/compact")
    await hark.say("the next question")
    assert not [request for request in hark.model.requests[-2:] if "canary" in words(request)]


async def test_undo_and_redo_leave_the_same_request(tmp_path: Path) -> None:
    requests = []
    for name in ("twin", "undone"):
        async with served(tmp_path / name) as hark:
            await hark.say("one")
            await hark.say("two", answers=[Call("read", {"path": "USER.md"}), "two it is"])
            await hark.say("three")
            if name == "undone":
                await order(hark, "/undo 2")
                await order(hark, "/undo")
                assert "“one”" in await order(hark, "/redo")
                assert (await order(hark, "/redo")).startswith("This counts again: “two”, “three”.")
                assert "nothing to redo" in await order(hark, "/redo")
            await hark.say("four")
            requests.append(hark.model.requests[-1])
    assert requests[0] == requests[1]


async def test_what_was_taken_back_stays_so_once_something_newer_was_said(tmp_path: Path) -> None:
    async with served(tmp_path) as hark:
        await hark.say("canary")
        await order(hark, "/undo")
        await hark.say("newer")
        assert "said or begun since" in await order(hark, "/redo")
        await order(hark, "/undo")
        assert "“newer”" in await order(hark, "/redo")
        assert "said or begun since" in await order(hark, "/redo")
        await hark.say("next")
        assert "canary" not in words(hark.model.requests[-1])
    async with served(tmp_path) as hark:  # also after a restart
        await hark.say("last")
        assert "canary" not in words(hark.model.requests[-1])


async def test_there_may_be_nothing_to_undo(hark: Hark) -> None:
    assert await order(hark, "/undo") == "There is nothing to undo."
    await hark.say("one")
    assert "“one”" in await order(hark, "/undo 9")
    assert await order(hark, "/undo") == "There is nothing to undo."
    assert "greater than" in await order(hark, "/undo 0")
    await hark.say("two")
    assert [message.text.rpartition("\n")[2] for message in hark.model.requests[-1].messages] == ["two"]


async def test_a_run_is_stopped_and_what_waits_is_dropped(hark: Hark) -> None:
    await hark.hanging("canary-running")
    await hark.write("canary-waiting")
    said = await order(hark, "/undo")
    assert "“canary-running”" in said
    assert "Stopped. 1 waiting message dropped." in said
    assert hark.stored.messages("state", "reason")[1] == ("dropped", Cause.UNDONE)
    await lanes_idle()
    await hark.say("next")
    assert "canary" not in words(hark.model.requests[-1])
    assert sorted(hark.stored.turns("state")) == [("done",), ("stopped",)]


async def test_what_is_not_sent_yet_never_will_be(hark: Hark) -> None:

    async def down(delivery: Delivery) -> SendResult:
        return NotSent(None, "away")

    hark.channel.on_send = down
    await hark.write("question")
    await hark.until(lambda: hark.stored.turns(state="done"), "the end")
    await hark.write("/undo")
    await hark.until(lambda: hark.stored.deliveries(state="expired"), "the end of the delivery")
    assert hark.stored.deliveries("state", "cause", said="ok") == [("expired", Cause.UNDONE)]
    hark.channel.on_send = None
    hark.service.parts.outbox.can_send("telegram", "bot")
    await hark.delivered()
    assert standing(hark) == ["I have taken back “question”."]


def refusing(hark: Hark, *actions: Action) -> Callable[[Delivery], Awaitable[SendResult]]:
    async def on_send(delivery: Delivery) -> SendResult:
        return Refused("not allowed") if delivery.action in actions else Sent(str(len(hark.channel.sent) + 1))

    return on_send


async def test_previews_receipts_and_files_go_too(tmp_path: Path) -> None:
    config = {"channels": {"telegram": {"streaming": {"mode": "preview"}}}, "agent": {"receipts": "on"}}
    async with served(tmp_path, config=config) as hark:
        hark.model.add(Call("write", {"path": "a.txt", "content": "a"}))
        hark.model.add(Call("message", {"action": "upload", "path": "a.txt", "text": "a file"}))
        hark.model.add("done")
        await hark.say("one")
        assert {one.action for one in hark.channel.sent} >= {Action.FILE, Action.SEND}
        assert len(standing(hark)) == 3
        said = await order(hark, "/undo")
        assert standing(hark) == [said]
        hang = Hang()
        await hark.write("two", answers=[("begun " * 20, hang)])
        await hark.until(lambda: any(text.startswith("begun") for text in standing(hark)), "a preview")
        said = [said, await order(hark, "/undo")]
        await hark.delivered()
        assert sorted(standing(hark)) == sorted(said)


async def test_what_cannot_be_deleted_is_struck_out_once_and_else_told(hark: Hark) -> None:
    await hark.say("question", answers=["*one*\n\ntwo"])
    hark.channel.on_send = refusing(hark, Action.DELETE)
    said = await order(hark, "/undo")
    await hark.delivered()
    assert sorted(standing(hark)) == sorted([r"~~\*one\*~~" "\n~~two~~", said])
    hark.channel.on_send = None
    await hark.say("again")
    hark.channel.on_send = refusing(hark, Action.DELETE, Action.EDIT)
    await hark.write("/undo")
    await hark.until(lambda: "neither delete nor change" in "".join(hark.channel.texts()), "the notice")
    await hark.delivered()
    assert sum("neither delete" in text for text in hark.channel.texts()) == 1


async def test_what_is_too_old_to_be_deleted_is_struck_out(hark: Hark) -> None:
    hark.channel.capabilities = replace(hark.channel.capabilities, deletes_within=48 * 3600)
    await hark.say("question")
    hark.time.advance(48 * 3600 + 1)
    said = await order(hark, "/undo")
    assert "- 1 message too old to be deleted, so I strike the words out" in said
    assert "will be gone" not in said
    assert [one.action for one in hark.channel.sent] == [Action.SEND, Action.EDIT, Action.SEND]
    assert standing(hark) == ["~~ok~~", said]


async def test_a_message_that_may_have_arrived_is_named(hark: Hark) -> None:

    async def unknown(delivery: Delivery) -> SendResult:
        return Unknown("no answer")

    async def settle(delivery: Delivery) -> SendResult:
        return Unknown("nobody knows")

    hark.channel.on_send, hark.channel.on_settle = unknown, settle
    await hark.write("question")
    await hark.until(lambda: hark.stored.deliveries(state="uncertain"), "a doubtful send")
    hark.channel.on_send = None
    await order(hark, "/undo")
    found = "- 1 message that may still be there: I cannot tell whether or where it arrived"
    await hark.until(lambda: any(found in text for text in hark.channel.texts()), "the answer")


async def test_a_second_copy_that_may_be_there_is_named(hark: Hark) -> None:

    async def unknown(delivery: Delivery) -> SendResult:
        hark.channel.on_send = None
        return Unknown("no answer")

    async def settle(delivery: Delivery) -> SendResult:
        return NotSent(0.0, "sent again")

    hark.channel.on_send, hark.channel.on_settle = unknown, settle
    await hark.say("question")
    said = await order(hark, "/undo")
    assert "1 message of mine will be gone." in said
    assert "- 1 message that may still be there: I cannot tell whether or where it arrived" in said
    assert standing(hark) == [said]


async def test_a_message_whose_sending_is_under_way_goes_when_it_has_arrived(hark: Hark) -> None:
    arrives = asyncio.Event()

    async def slow(delivery: Delivery) -> SendResult:
        if delivery.body == "ok":
            await arrives.wait()
        return Sent(str(len(hark.channel.sent) + 1))

    hark.channel.on_send = slow
    await hark.write("question")
    await hark.until(lambda: hark.stored.deliveries(state="sending"), "a call")
    await hark.write("/undo")
    await hark.until(lambda: hark.stored.deliveries(source=Like("cmd:%")), "the undo")
    arrives.set()
    await hark.until(lambda: any("I have taken back" in text for text in hark.channel.texts()), "all of it")
    await hark.delivered()
    (said,) = standing(hark)
    assert said.endswith("- 1 message that may still be there: I cannot tell whether or where it arrived")


async def test_a_message_into_another_chat_goes_too_and_nobody_is_told_of_it(hark: Hark) -> None:
    await hark.say("hello", sender="2")
    await hark.say("tell them", answers=[Call("message", {"action": "send", "to": "2", "text": "canary"}), "sent"])
    assert any("canary" in text for text in standing(hark, "2"))
    said = await order(hark, "/undo")
    assert "2 messages of mine will be gone." in said
    assert "This stays" not in said
    assert standing(hark, "2") == ["ok"]
    await hark.say("what?", sender="2")
    assert "canary" not in words(hark.model.requests[-1])


async def test_what_a_summary_stands_for_cannot_be_taken_back(hark: Hark) -> None:
    for number in range(4):
        await hark.say(f"question {number} " + "long " * 200)
    assert "summed up" in await order(hark, "/compact")
    before = hark.stored.entries("seq", "hidden")
    assert "A summary stands for that" in await order(hark, "/undo 4")
    assert hark.stored.entries("seq", "hidden") == before
    assert "“question 1" in await order(hark, "/undo 3")
    await hark.say("next")
    first, second = hark.model.requests[-1].messages
    assert (LEFT_OUT in first.text, second.text.endswith("next")) == (False, True)


async def test_a_guest_takes_nothing_of_others_back(tmp_path: Path) -> None:
    config = {"sessions": {"dm_scope": "main"}}
    async with served(tmp_path, config=config) as hark:
        await hark.write("of the owner")
        await hark.until_texts(1)
        await hark.delivered()
        assert "somebody else's" in await order(hark, "/undo", sender="2")
        hang = await hark.hanging("another")
        assert "somebody else's" in await order(hark, "/undo", sender="2")  # nor is it stopped
        hang.release()
        await hark.until_texts(2)
        assert "“another”" in await order(hark, "/undo")
        assert "somebody else's" in await order(hark, "/redo", sender="2")
        assert "“another”" in await order(hark, "/redo")
        await hark.write("mine", sender="2")
        await hark.until(lambda: len(hark.model.requests) == 3, "the answer")
        await hark.delivered()
        assert "“mine”" in await order(hark, "/undo", sender="2")


async def test_in_groups_owners_have_it_and_for_others_it_is_no_command(tmp_path: Path) -> None:
    group = {"channels": {"telegram": {"groups": {"policy": "open", "require_mention": False}}}}
    place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
    async with served(tmp_path, config=group) as hark:

        async def say(text: str, sender: str) -> None:
            message = hark.message(text)
            origin = replace(message.origin, place=place, sender=sender)
            await hark.accept(replace(message, origin=origin, event_key=f"m:-5:{origin.message_id}"))

        await say("what is it?", "2")
        await hark.until_texts(1, "-5")
        await say("/undo", "2")
        await hark.until(lambda: len(hark.model.requests) == 2, "the question")
        await hark.delivered()
        await say("/undo 2", "1")
        await hark.until(lambda: "taken back" in hark.channel.texts("-5")[-1], "the answer")
        await hark.delivered()
        assert len(standing(hark, "-5")) == 1


PROGRAM = (http_key("x"), Place(channel="http", account="", chat="x", kind=ChatKind.API))
TERMINAL = (console_key(), Place(channel="console", account="", chat="local", kind=ChatKind.CONSOLE))


@pytest.mark.parametrize(("key", "place"), [PROGRAM, TERMINAL], ids=["program", "terminal"])
async def test_where_nothing_can_be_deleted_a_line_says_so(key: str, place: Place, hark: Hark) -> None:
    api = hark.service.parts.api

    async def ask(text: str) -> str:
        turn = await api.submit(text, key, place, "somebody")
        view = await api.wait(turn.turn_id, 10)
        assert view is not None
        return view.text

    await ask("canary")
    assert await ask("/undo") == "I have taken back “canary”."
    await ask("next")
    assert "canary" not in words(hark.model.requests[-1])


async def test_an_edited_question_is_answered_anew_once(hark: Hark) -> None:
    await hark.say("before")
    asked = hark.message("canary-question")
    hark.model.add("canary-answer")
    await hark.accept(asked)
    await hark.until_texts(2)
    await hark.delivered()
    await hark.accept(edit(asked, "canary-edit"))
    await hark.until_texts(3)
    offer = hark.channel.sent[-1]
    await hark.accept(edit(asked, "the better question"))  # no further offer
    (button,) = offer.buttons
    assert button.label == "Answer the edited question"
    hark.model.add("the better answer")
    presses = [press(hark, button.sends, "3", str(number)) for number in range(3)]
    await hark.accept(*presses)
    await hark.until(lambda: "the better answer" in hark.channel.texts(), "the answer")
    await hark.delivered()
    await lanes_idle()
    assert standing(hark) == ["ok", f"{offer.said}\n\n✓ **{button.label}**", "the better answer"]
    assert len(hark.model.requests) == 3
    assert words(hark.model.requests[-1]).count("the better question") == 1
    await hark.say("and now?")
    assert "canary" not in words(hark.model.requests[-1])
    assert words(hark.model.requests[-1]).count("the better question") == 1
    await hark.accept(edit(asked, "yet another"))  # it is not the newest any more
    await hark.say("really?")
    assert "yet another" in words(hark.model.requests[-1])
    assert [one for one in hark.channel.sent if one.buttons] == [offer]


async def test_a_message_that_was_deleted_is_not_answered_anew(tmp_path: Path) -> None:
    async with served(tmp_path, config={"queue": {"debounce_ms": 1000}}) as hark:
        one, two = hark.message("the first half"), hark.message("canary")
        await hark.accept(one, two)
        await asyncio.sleep(0)  # until the timer runs
        hark.time.advance(2)
        await hark.until_texts(1)
        await hark.delivered()
        await hark.accept(edit(one, "the better half"), delete(two))
        await hark.until_texts(2)
        await hark.accept(press(hark, hark.channel.sent[-1].buttons[0].sends, "2", "press"))
        await hark.until(lambda: len(hark.model.requests) == 2, "the new answer")
        assert "the better half" in words(hark.model.requests[-1])
        assert "canary" not in words(hark.model.requests[-1])


async def test_only_who_asked_or_an_owner_has_it_answered_anew(tmp_path: Path) -> None:
    group = {"channels": {"telegram": {"groups": {"policy": "open", "require_mention": False}}}}
    place = Place(channel="telegram", account="bot", chat="-5", kind=ChatKind.GROUP)
    async with served(tmp_path, config=group) as hark:
        asked = hark.message("question")
        origin = replace(asked.origin, place=place, sender="2")
        asked = replace(asked, origin=origin, event_key=f"m:-5:{origin.message_id}")
        await hark.accept(asked)
        await hark.until_texts(1, "-5")
        await hark.delivered()
        await hark.accept(edit(asked, "better"))
        await hark.until_texts(2, "-5")
        (button,) = hark.channel.sent[-1].buttons

        def pressed(sender: str) -> object:
            one = press(hark, button.sends, "2", sender)
            return replace(one, origin=replace(one.origin, place=place, sender=sender))

        await hark.accept(pressed("3"))  # type: ignore[arg-type]
        await hark.until(lambda: "somebody else's" in hark.channel.texts("-5")[-1], "the refusal")
        assert len(hark.model.requests) == 1
        await hark.accept(pressed("2"))  # type: ignore[arg-type]
        await hark.until(lambda: len(hark.model.requests) == 2, "the new answer")
        await hark.delivered()
        assert "better" in words(hark.model.requests[-1])


async def test_no_offer_where_something_was_said_since(hark: Hark) -> None:
    asked = hark.message("question")
    await hark.accept(asked)
    await hark.until_texts(1)
    await hark.say("newer")
    await hark.accept(edit(asked, "better"))
    await lanes_idle()
    assert not [one for one in hark.channel.sent if one.buttons]
