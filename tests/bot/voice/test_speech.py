"""Answers said aloud in the real service: behind their text, once, and only where somebody has asked for it."""

import os
from pathlib import Path

import pytest

from bot.persistence.deliveries import PlanIn
from bot.voice.speech import LONGEST, speakable
from channels.message import ChatKind, Place
from channels.outgoing import Action, Delivery, NotSent, OutgoingFile, Planned, SendResult, Sent
from channels.sources import sentence
from tests.service import Hark, Json, running
from tests.standins.voice_server import KEY, VoiceServer


def by(server: VoiceServer) -> Json:
    return {"speech": {"base_url": server.base_url, "api_key": KEY}}


def sounds(hark: Hark) -> list[Delivery]:
    return [one for one in hark.channel.sent if one.action is Action.FILE]


async def test_an_answer_is_said_aloud_behind_its_text(tmp_path: Path) -> None:
    async with VoiceServer() as server, running(tmp_path, config=by(server)) as hark:
        assert (await hark.say("hello")).texts == [hark.channel.texts()[-1]]
        assert sounds(hark) == []
        await hark.write("/voice on", answers=["**Good** evening."])
        await hark.until(lambda: "Voice is on." in hark.channel.texts())
        heard: list[bytes] = []

        async def listen(delivery: Delivery) -> SendResult:
            if delivery.file:
                with delivery.file.open() as file:
                    heard.append(file.read())
            return Sent("9")

        hark.channel.on_send = listen
        await hark.say("hello again")
        assert [one.action for one in hark.channel.sent[-2:]] == [Action.SEND, Action.FILE]
        assert hark.channel.sent[-2].body == "**Good** evening."
        assert heard == [b"ID3Good evening."]
        assert server.spoken == [
            {"model": "tts-1", "voice": "alloy", "input": "Good evening.", "response_format": "mp3"}
        ]


async def on(hark: Hark) -> None:
    await hark.write("/voice on")
    await hark.until(lambda: "Voice is on." in hark.channel.texts())


async def test_it_says_the_last_words_of_a_turn_and_stops_when_told(tmp_path: Path) -> None:
    async with VoiceServer() as server, running(tmp_path, config=by(server)) as hark:
        await on(hark)
        await hark.say("first", answers=["One."])
        await hark.write("/voice off")
        await hark.until(lambda: "Voice is off." in hark.channel.texts())
        await hark.say("second", answers=["Two."])
        assert [one["input"] for one in server.spoken] == ["One."]


async def test_code_is_left_out_and_of_long_answers_the_beginning_is_said(tmp_path: Path) -> None:
    async with VoiceServer() as server, running(tmp_path, config=by(server)) as hark:
        await on(hark)
        for answer in ("```py\nprint(1)\n```", "NO_REPLY", "See:\n```py\nprint(1)\n```\nThat is all."):
            await hark.say("hello", answers=[answer])
        assert len(sounds(hark)) == 1
        (said,) = server.spoken
        assert said["input"].split() == ["See:", "That", "is", "all."]
    assert speakable("`ls` shows [files](https://a.example) …") == "ls shows files …"
    assert speakable("| a | b |\n|---|---|\n| 1 | 2 |") == ""
    long = speakable("A sentence. " * LONGEST)
    assert (len(long) <= LONGEST, long[-9:]) == (True, "sentence.")
    assert len(speakable("x" * 2 * LONGEST)) == LONGEST


async def test_a_guard_is_asked_about_the_words_before_the_sound_is_made(tmp_path: Path) -> None:
    (tmp_path / "hooks").mkdir()
    code = "async def message_sending(event):\n    return {'cancel': bool(event.file) and 'secret' in event.text}\n"
    (tmp_path / "hooks/guard.py").write_text(code)
    async with VoiceServer() as server, running(tmp_path, config=by(server)) as hark:
        await on(hark)
        for answer in ("a secret", "a word"):
            await hark.say("hello", answers=[answer])
        assert [one["input"] for one in server.spoken] == ["a word"]
        assert hark.stored.deliveries("state", "cause").count(("expired", "hook")) == 1


async def test_a_failure_costs_a_sentence(tmp_path: Path) -> None:
    async with VoiceServer() as server, running(tmp_path, config=by(server)) as hark:
        await on(hark)
        server.status = 503
        reply = await hark.say("hello", answers=["Good evening."])
        assert reply.texts == [
            "Good evening.",
            "(I could not say this aloud: the endpoint answered with status 503.)",
        ]


async def test_it_is_sent_once_whatever_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.service.OUTBOX_GRACE", 0.0)
    async with VoiceServer() as server:
        async with running(tmp_path, config=by(server)) as hark:
            await on(hark)
            server.hangs, server.came = True, hark.watch.changed
            await hark.write("hello", answers=["Good evening."])
            await hark.until(lambda: len(server.spoken) == 1)
            assert hark.channel.texts()[-1] == "Good evening."
        server.hangs = False
        async with running(tmp_path, config=by(server), wait=False) as hark:
            await hark.until(lambda: sounds(hark))
            await hark.delivered()
            assert [one.file and one.file.says for one in hark.channel.sent] == ["Good evening."]
            assert hark.model.requests == []
        async with running(tmp_path, config=by(server)) as hark:
            await hark.rested()
            assert hark.channel.sent == []


async def test_a_sound_that_has_to_be_sent_again_is_made_again_where_it_is_gone(tmp_path: Path) -> None:
    async with VoiceServer() as server, running(tmp_path, config=by(server)) as hark:
        await on(hark)
        tries: list[bool] = []

        async def lose(delivery: Delivery) -> SendResult:
            if delivery.file is None:
                return Sent("1")
            tries.append(os.path.exists(delivery.file.path))  # noqa: ASYNC240
            os.unlink(delivery.file.path)
            return NotSent(0.0, "flood") if len(tries) == 1 else Sent("2")

        hark.channel.on_send = lose
        await hark.say("hello", answers=["Good evening."])
        assert tries == [True, True]
        assert len(server.spoken) == 2


async def test_without_speech_the_command_says_so(hark: Hark) -> None:
    await hark.write("/voice on")
    (said,) = await hark.until_texts(1)
    assert said.startswith("I have no voice")
    await hark.write("/voice")
    assert (await hark.until_texts(2))[1] == "Voice is off."


@pytest.mark.parametrize(("says", "at_once"), [("Good evening.", False), ("", True)])
async def test_what_is_still_to_be_made_is_not_sending_when_it_is_planned(
    tmp_path: Path, says: str, at_once: bool
) -> None:
    """Of a streamed answer the text may have been planned before its end, so that the sound comes first in a plan."""
    place = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)
    file = OutgoingFile(path="/nowhere", name="answer.ogg", says=says)
    spoken = Planned(source=sentence("spoken"), body="", nonce=1, action=Action.FILE, file=file)
    async with running(tmp_path) as hark:
        with hark.service.parts.outbox.planning(99, place, [spoken]) as where:
            assert where == PlanIn(99, at_once)
