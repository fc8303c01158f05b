"""`send_policy` and /send: where what the model says is not sent, and what is sent all the same."""

from pathlib import Path
from typing import Any

import pytest

from bot.config.model import Config
from bot.persistence.causes import Cause
from tests.bot.background.test_due_times import settle
from tests.bot.background.test_schedule import GROUP, command, in_group
from tests.bot.replies.test_showing import Previewing, previewed, shown, streaming
from tests.service import Hark, running, settings
from tests.standins.script import Call, Gate, Say

DENY = {"action": "deny"}
ALLOW = {"action": "allow"}


def policy(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"send_policy": list(rules), **GROUP}


async def answered(hark: Hark, sender: str = "1", **fields: Any) -> str:
    """Write a message that the model answers; returns what became of the answer."""
    turns = len(hark.stored.turns())
    await hark.write("ask", sender=sender, **fields, answers=["the answer"])
    await hark.until(lambda: len(hark.stored.turns(state="done")) > turns, "the end of the turn")
    await hark.delivered()
    return str(hark.stored.deliveries("state", said="the answer")[-1][0])


@pytest.mark.parametrize(
    ("rules", "direct", "group", "thread"),
    [
        ((), "sent", "sent", "sent"),
        ((DENY,), "expired", "expired", "expired"),
        (({**DENY, "channel": "slack"},), "sent", "sent", "sent"),
        (({**DENY, "channel": "telegram"}, ALLOW), "expired", "expired", "expired"),
        ((ALLOW, {**DENY, "chat_type": "direct"}), "expired", "sent", "sent"),
        (({**DENY, "chat_type": "group"},), "sent", "expired", "expired"),
        (({**DENY, "chat_type": "thread"},), "sent", "sent", "expired"),
        (({**DENY, "key": "telegram:group"},), "sent", "expired", "expired"),
        (({**DENY, "key": "agent:main:telegram:direct:1"},), "expired", "sent", "sent"),
        (({**DENY, "key": "agent:main:telegram:direct:12"},), "sent", "sent", "sent"),
        (({**DENY, "chat_type": "direct", "channel": "slack"},), "sent", "sent", "sent"),
    ],
)
async def test_rules_are_about_channels_chats_and_keys_and_deny_wins(
    tmp_path: Path, rules: tuple[dict[str, Any], ...], direct: str, group: str, thread: str
) -> None:
    async with running(tmp_path, config=policy(*rules)) as hark:
        assert await answered(hark) == direct
        assert await answered(hark, **in_group(hark)) == group
        assert await answered(hark, **in_group(hark, thread="7")) == thread
        causes = {cause for (cause,) in hark.stored.deliveries("cause", state="expired")}
        assert causes <= {Cause.UNSENT.value}


async def test_the_model_works_commands_are_answered_and_an_owner_is_told_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=policy({**DENY, "chat_type": "group"})) as hark:
        assert await answered(hark) == "sent"
        for _ in range(2):
            assert await answered(hark, **in_group(hark)) == "expired"
        assert len(hark.model.requests) == 3
        assert [text for text in hark.channel.texts() if "denies it" in text] == [
            "What I say is not sent to telegram (chat -5): a rule of `send_policy` denies it."
        ]
        said = await command(hark, "/send", "-5", **in_group(hark))
        assert said.startswith(
            "What I say in this conversation is not sent. A rule of `send_policy` denies it (chat_type: group)"
        )


async def test_an_owner_overrides_the_rules_for_a_session(tmp_path: Path) -> None:
    async with running(tmp_path, config=policy({**DENY, "chat_type": "group"})) as hark:
        assert "is sent. `send_policy` allows it" in await command(hark, "/send")
        await command(hark, "/send off")
        assert await answered(hark) == "expired"
        assert "Sending is off" in await command(hark, "/send")
        assert not any("denies it." in text for text in hark.channel.texts()[3:])  # who said so need not be told
        await command(hark, "/send on", "-5", **in_group(hark))
        assert await answered(hark, **in_group(hark)) == "sent"
        await command(hark, "/send default")
        assert await answered(hark) == "sent"
        assert (await hark.say("/send on", sender="2", answers=["what is that?"])).texts == ["what is that?"]


async def test_a_tool_sends_nothing_for_a_session_that_may_not_and_is_told_so(tmp_path: Path) -> None:
    async with running(tmp_path, config=policy({**DENY, "chat_type": "direct"})) as hark:
        await answered(hark, **in_group(hark))
        hark.model.add(Call("message", {"action": "send", "to": "-5", "text": "psst"}))
        hark.model.add("done")
        sent = len(hark.channel.texts("-5"))
        await hark.write("tell them")
        await hark.until(lambda: len(hark.stored.turns(state="done")) == 2, "the end")
        await hark.delivered()
        assert len(hark.channel.texts("-5")) == sent
        assert Cause.UNSENT.value in hark.model.requests[-1].messages[-1].tool_results[0].text


async def test_a_beat_says_nothing_where_that_is_denied(tmp_path: Path) -> None:
    beats = {"heartbeat": {"every": "30m", "prompt": "look around"}}
    async with running(tmp_path, config={**policy({**DENY, "chat_type": "direct"}), **beats}) as hark:
        await answered(hark)
        hark.model.add("The house is on fire.")
        hark.time.advance(1800)
        await settle(hark)
        await hark.delivered()
        assert hark.stored.deliveries("state", said="The house is on fire.") == [("expired",)]


async def test_what_was_shown_of_an_answer_is_taken_away_when_sending_ends(tmp_path: Path) -> None:
    gate, text = Gate(), "The answer begins here and is long enough. It goes on."
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        await hark.write("a question", answers=[Say(text, chunks=[text[:42], text[42:]], gate=gate)])
        await previewed(hark, gate, 1)
        await command(hark, "/send off")
        gate.open()
        await hark.until(lambda: hark.stored.turns(state="done"), "the end of the turn")
        await hark.delivered()
        (told,) = shown(hark.channel)
        assert told.startswith("From now on nothing")


def test_a_rule_names_what_there_is(tmp_path: Path) -> None:
    assert settings(tmp_path, {"send_policy": [{"action": "deny", "key": "telegram"}]}).send_policy[0].key == (
        "agent:main:telegram"
    )
    for wrong in (
        {"action": "forbid"},
        {"channel": "slack"},
        {**DENY, "chat_type": "room"},
        {**DENY, "channel": "irc"},
    ):
        with pytest.raises(ValueError, match="send_policy"):
            Config.model_validate({"send_policy": [wrong]})
