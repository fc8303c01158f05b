"""The heartbeat as an owner sees it: its days on each platform, where alerts go, what stays quiet, what it costs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.standins.anthropic_server import AnthropicServer
from tests.standins.discord_ledger import Rule as DiscordRule
from tests.standins.request_log import Request
from tests.standins.script import Call, Continuer, Gate, Hang, Reply, Say, Think, Written
from tests.standins.slack_ledger import Rule as SlackRule
from tests.standins.telegram_ledger import Rule as TelegramRule
from tests.wire.answers import PLATFORMS, Player, Seen, answering
from tests.wire.corpus import LOOK, SECRET, bits, tool
from tests.wire.heartbeats import HOUR, Days, Heartbeat, days
from tests.wire.platforms import SIDES
from tests.wire.stage import IDLE
from tests.wire.test_prefix import blocks, check_prefixes, fixed

pytestmark = pytest.mark.xdist_group("wire-heartbeat")
every = pytest.mark.parametrize("name", PLATFORMS)
EARLY = {"telegram": TelegramRule.EARLY, "discord": DiscordRule.EARLY, "slack": SlackRule.EARLY}
OK = "HEARTBEAT_OK"
DRY = "The tomatoes are dry, and it will not rain before Thursday."
OPEN = "The door of the greenhouse stands open, and a storm is on its way."
FULL = "The barrel is full, and the gutter above it drips."


@every
async def test_days_with_trouble_a_crash_and_a_pause(name: str, tmp_path: Path) -> None:
    hours = {"start": "09:00", "end": "17:00", "timezone": "Europe/Berlin"}
    sign = "/" if name == "telegram" else "!"
    async with days(tmp_path, "2026-05-04T08:10+02:00", name=name, active_hours=hours) as play:
        stage, side = play.stage, play.stage.side
        async with stage.serving():
            await play.hello()
            await play.turn()
            assert (len(play.asked), play.told) == (1, []), "09:10, all is well"
            expected = []
            for text, applied in ((DRY, False), (OPEN, True)):  # the connection breaks before or after it is posted
                doubled = applied and not side.knows_sends
                side.may_double(*[text] * doubled)
                fault = side.fail_send(applied=applied)
                play.answer = text
                stage.time.advance(HOUR)
                await play.tick()
                await stage.passing(lambda text=text: text in side.posts() and stage.at_rest(), "the alert")
                expected += [text] * (1 + doubled)
                assert (fault.fired, play.told) == (1, expected)
            await play.turn()
            assert (len(play.asked), play.told) == (4, expected), "12:10, the same alert is not sent again"
            play.answer = FULL
            flooded = side.flood("alice")
            side.server.tolerate(EARLY[name])  # nobody remembers a pause after a crash
            stage.time.advance(HOUR)
            await play.tick()
            await stage.until(lambda: len(stage.stored.firings("turn_id", outcome="said")) == 3, "the end of the turn")
            await stage.until(lambda: flooded.fired, "the refusal")
            stage.dead = True
        play.answer = OK
        async with stage.serving():
            await stage.passing(lambda: FULL in side.posts() and stage.at_rest(), "the alert of 13:10")
            assert (len(play.asked), play.told) == (5, [*expected, FULL])
        stage.time.advance(2.5 * HOUR)
        async with stage.serving():
            await play.due()
            assert (len(play.asked), "was due" in play.asked[-1][1]) == (6, True), "15:10, late"
            await play.next()
            await play.days(0.5)
            assert (len(play.asked), "was due" in play.asked[-1][1]) == (7, False), "16:10, the last of the day"
            reasons = {("due", ""), ("late", ""), ("late", "missed"), ("due", "quiet-hours")}
            assert {receipt[:2] for receipt in play.receipts()} == reasons
            assert "off" in await play.says(f"{sign}heartbeat off")
            await play.days(0.25)
        async with stage.serving():
            await play.turn()
            assert len(play.asked) == 7, "a pause outlasts a restart"
            await play.says(f"{sign}heartbeat now")
            await stage.until(lambda: len(play.asked) == 8 and play.over(), "a heartbeat turn by hand")
            await play.says(f"{sign}heartbeat on")
            await play.turn()
            assert (len(play.asked), play.receipts()[-1]) == (9, ("due", "", "quiet"))
            assert "quiet" in await play.says(f"{sign}heartbeat")
        assert len(set(stage.stored.firings("due_at", reason=""))) == 9


@every
async def test_an_alert_goes_where_the_configuration_says_and_is_known_there(name: str, tmp_path: Path) -> None:
    beside = PLATFORMS[PLATFORMS.index(name) - 1]
    async with days(tmp_path, name=name) as play, SIDES[beside](play.stage.time) as other:
        stage, side, heartbeat = play.stage, play.stage.side, play.stage.changes["heartbeat"]
        async with stage.serving():
            thread = side.thread(side.say("start", room=side.room))
            await play.says("in here", room=side.room, mention=True, thread=thread)
        ((heartbeat["session"],),) = stage.stored.sessions("session_key")
        assert ":thread:" in heartbeat["session"]
        async with stage.serving():
            play.answer = DRY
            await play.turn()
            assert side.posts(side.room, thread)[-1] == DRY
            assert (DRY in side.posts(side.room), play.told) == (False, [])
            await play.says("what was that?", room=side.room, mention=True, thread=thread)
            assert DRY in str(stage.model.requests[-1].messages)
        del heartbeat["session"]
        heartbeat["target"] = f"{name}:{side.id_of(side.room)}"
        stage.changes["section"] = {"heartbeat": {"direct": "block"}}  # which is not about rooms
        async with stage.serving():
            await play.hello()
            play.answer = OPEN
            await play.turn()
            play.answer = OK
            await play.turn()
            assert side.posts(side.room)[-1] == OPEN
            assert play.told == []
            side.say("who said that?", "bob", room=side.room, mention=True)
            await stage.until(lambda: "who said that?" in stage.model.requests[-1].messages[-1].text, "the question")
            await stage.until(stage.at_rest, "an answer in the room")
            if name != "slack":  # where that is a thread, which is another session
                assert OPEN in str(stage.model.requests[-1].messages)
        del heartbeat["target"]
        async with stage.serving():
            play.answer = FULL
            before = len(play.asked)
            await play.turn()
            assert (len(play.asked), play.told, play.receipts()[-1][1]) == (before, [], "not-shown")
        other.may_break()
        stage.beside, stage.changes["channels"] = (other,), {beside: other.section()}
        heartbeat["target"] = f"{beside}:{other.id_of(other.room)}"
        async with stage.serving():
            other.say("here we are", "bob", room=other.room)  # Telegram has no chat in which nobody has written
            await play.hello("and now?")
            await play.turn()
            await stage.until(lambda: other.posts(other.room) == [FULL], "the alert")
            assert play.told == []


async def test_what_the_platform_refused_is_sent_once_at_the_next_chance(tmp_path: Path) -> None:
    async with days(tmp_path) as play, play.stage.serving():
        side = play.stage.side
        await play.hello()
        side.server.fail_next("sendMessage", status=403, description="Forbidden: bot was blocked by the user", times=1)
        play.answer = DRY
        await play.turn()
        assert play.told == []
        play.answer = OK
        await play.turn()
        await play.turn()
        (text,) = play.told
        assert text.endswith(DRY)


@dataclass(frozen=True, slots=True)
class Quiet:
    """turn: what a heartbeat turn with these answers shows; reply: what an ordinary turn shows, without it the same."""

    name: str
    steps: Sequence[Written | Reply]
    turn: Sequence[str] = ()
    reply: Sequence[str] | None = None
    files: Sequence[str] = ()


def much(length: int) -> str:
    """Return words of that many characters."""
    return " ".join(f"word{number:03}" for number in range(60))[: length - 1] + "."


def quiet(tag: str) -> list[Quiet]:
    """Return answers with signs of silence; another tag gives other alerts, as the same is not sent twice."""
    said = f"The {tag} needs water today."
    bare = [OK, f"<p><strong>{OK}</strong></p>", r"HEARTBEAT\_OK", f"```text\n{OK}\n```", f"**{OK}**."]
    bare += [f"<think>{SECRET}</think>{OK}", '{"action": "NO_REPLY"}', f"[[reply_to_current]] {OK}"]
    found = [Quiet(f"bare-{number}", [bits(text)]) for number, text in enumerate(bare)]
    return [
        *found,
        Quiet("nothing", [[], []], (), ["The model gave no usable answer. Please try again."]),
        Quiet("few-words", [bits(f"<b>{OK}</b> {said}")], (), [said]),
        Quiet("words-before", [bits(f"{said}\n\n**{OK}**.")], (), [said]),
        Quiet("most", [bits(f"{OK}\n\n{much(300)}")], (), [much(300)]),
        Quiet("more", [bits(f"{tag}{much(301)}\n\n{OK}")], [f"{tag}{much(301)}"]),
        Quiet("within", [bits(f"It logs {OK} all day in the {tag}.")], [f"It logs {OK} all day in the {tag}."]),
        Quiet("thought", [bits(f"<think>{OK} {SECRET}</think>{said}")], [said]),
        Quiet("silent-tool", [[Say(f"Not so dry, {tag}."), LOOK], [Call("stay_silent")]], (), [f"Not so dry, {tag}."]),
        Quiet("looked", [[Say("I look."), LOOK], bits(OK)], (), ["I look."]),
        Quiet(
            "found",
            [[Say("I look around."), LOOK], f"The {tag} is gone."],
            [f"I look around.\n\nThe {tag} is gone."],
            ["I look around.", f"The {tag} is gone."],
        ),
        Quiet("cut-token", [Continuer(OK, "/cut-token", [1], 4)]),
        Quiet("cut-words", [Continuer(f"The {tag} burns!", "/cut-words", [3], 8)], [f"The {tag} burns!"]),
        Quiet("tool-said", [tool(f"A guest is in the {tag}."), OK], [f"A guest is in the {tag}."]),
        Quiet("tool-token", [tool(f"**{OK}**."), OK]),
        Quiet("file", [bits(f"{OK}\nMEDIA: notes.txt")], [], files=["notes.txt"]),
        *(Quiet(f"two-pieces-{at}", [Say(OK, [OK[:at], OK[at:]])]) for at in (1, 6, 10)),
    ]


async def turn(play: Player, heartbeat: Heartbeat, platform: str, case: Quiet) -> Seen:
    """Return what one heartbeat turn with these answers has led to in the owner's chat."""
    play.chats[platform, case.name] = play.chats[platform, "owner"]
    play.asked[platform, case.name] = ""
    before = play.seen(platform, case.name)
    play.prepare(platform, case.name, case.steps)
    await heartbeat.turn(f"- look after {platform}/{case.name}\n")
    after = play.seen(platform, case.name)
    del play.chats[platform, case.name]
    return Seen(after.posts[len(before.posts) :], after.calls[len(before.calls) :])


def differs(seen: Seen, texts: Sequence[str], files: Sequence[str]) -> bool:
    """Return whether something else stands there, or a sign of silence or a thought was shown on the way."""
    words = "".join(text for *_, text in seen.calls)
    return (
        (seen.texts, seen.files) != (list(texts), list(files))
        or SECRET in words
        or (OK in words and OK not in str(texts))
    )


@pytest.mark.parametrize("mode", [pytest.param("block", marks=pytest.mark.soak), "preview"])
async def test_a_quiet_day_shows_nothing_at_any_time_and_the_same_words_are_answers(mode: str, tmp_path: Path) -> None:
    found: list[str] = []
    async with answering(tmp_path, mode, min_chars=1, idle_ms=0) as play:
        play.model.tolerate("prefix changed")  # by quiet turns, on purpose: see the test of what a provider is sent
        owners = ["telegram:600000000", "discord:90000000000000001", "slack:U0NEW00002"]
        play.stage.changes |= {"owners": owners, "heartbeat": {"every": "5m", "daily_budget": 10**9}}
        (play.stage.home / "workspace").mkdir()
        (play.stage.home / "workspace" / "notes.txt").write_text("notes")
        heartbeat = Heartbeat(play.stage)
        async with play.stage.serving():
            for platform in PLATFORMS:
                play.ask(platform, "owner", ["Hello."])
            await play.rest()
            for where, platform in enumerate(PLATFORMS):
                play.go_on(platform, "owner", ["I am here."])  # alerts go where an owner wrote last
                await play.rest()
                cases = quiet(platform)[where::3] if mode == "preview" else quiet(platform)
                for case in cases:
                    seen = await turn(play, heartbeat, platform, case)
                    if differs(seen, case.turn, case.files) or set(seen.kinds) - {"send"}:
                        found.append(f"{case.name} as a heartbeat turn on {platform}: {seen.calls}")
                    outcome = "said" if case.turn or case.files else "quiet"
                    if heartbeat.receipts()[-1] != ("due", "", outcome) and case.name != "nothing":
                        found.append(f"{case.name} on {platform}: {heartbeat.receipts()[-1]}")
                gate = Gate()
                held = Quiet("held", [[Say(much(400) * 4, 9), Say(f" {platform}.", 2, gate=gate)]])
                play.chats[platform, "held"] = play.chats[platform, "owner"]
                play.prepare(platform, "held", held.steps)
                play.asked[platform, "held"] = ""
                before = len(play.seen(platform, "held").calls)
                heartbeat.note(f"- look after {platform}/held\n")
                play.stage.time.advance(heartbeat.every)
                await heartbeat.tick()
                await gate.reached()
                for _ in range(5):  # as long as a preview or a block would wait
                    play.stage.time.advance(2)
                    await asyncio.sleep(IDLE)
                assert len(play.seen(platform, "held").calls) == before, f"shown while it is written on {platform}"
                gate.open()
                heartbeat.note("# Nothing\n")
                await heartbeat.due()
                assert {kind for kind, *_ in play.seen(platform, "held").calls[before:]} == {"send"}, platform
                for case in cases:
                    play.ask(platform, case.name, case.steps)
                    (play.room_of(platform, case.name) / "notes.txt").write_text("notes")
                await play.rest(passing=True)
                for case in cases:
                    seen = play.seen(platform, case.name)
                    if differs(seen, case.turn if case.reply is None else case.reply, case.files):
                        found.append(f"{case.name} as a reply on {platform}: {seen.calls}")
            found += play.wrong
    assert not found, "\n".join(found)


@contextlib.asynccontextmanager
async def asked(home: Path, **heartbeat: Any) -> AsyncIterator[tuple[Days, AnthropicServer]]:
    """Yield a heartbeat whose model is a provider's; it repeats what people say, and `play.answer` is for its turns."""
    async with days(home, "2026-05-04T00:10", **heartbeat) as play, AnthropicServer() as model:
        models = {name: {"thinking": True, "max_output": 4096} for name in ("some-model", "small")}
        provider = {"api": "anthropic", "base_url": model.url, "api_keys": ["test-key"], "models": models}
        play.stage.changes |= {
            "agent": {"model": "house/some-model", "thinking": "low", "drain_seconds": 0},
            "providers": {"house": provider},
        }
        play.stage.given = {"model": None}
        model.default = play.stage.model.default
        model.tolerate("prefix changed")  # by quiet turns, which the next request does not have; looked at more closely
        yield play, model


def is_heartbeat(request: Request) -> bool:
    return "heartbeat" in request.last_user_text


async def test_a_provider_is_sent_alerts_again_and_quiet_turns_never(tmp_path: Path) -> None:
    async with asked(tmp_path, isolated=False, light_context=False) as (play, model):
        async with play.stage.serving():
            await play.hello()
            play.answer = [Say(f"All is well. {OK}")]
            await play.turn()
            for task in ("one", "two"):
                model.add(Think("hm"), Say("I look."), LOOK)
                model.add(Think("so"), Say(OK))
                await play.turn(f"- look after {task}\n")
            model.add(Call("stay_silent", {"reason": "nothing"}))
            await play.turn()
            await play.hello("first")
        async with play.stage.serving():
            model.add(Think("hm"), Say(DRY))
            await play.turn()
            await play.turn()
            await play.hello("second")
            hang = Hang()
            model.add(Say("All "), hang, Say(f"is well. {OK}"))
            play.stage.time.advance(HOUR)
            await play.tick()
            await hang.entered()
            play.stage.side.say("third")
            await play.stage.until(lambda: play.stage.stored.texts(state={"waiting", "steering", "taken"}), "it")
            hang.release()
            await play.stage.until(lambda: "re: third" in play.stage.side.posts() and play.over(), "an answer")
    words = [request for request in model.requests if not is_heartbeat(request)]
    assert [request.last_user_text.splitlines()[-1] for request in words] == ["hello", "first", "second", "third"]
    check_prefixes(words)
    last = str(words[-1].messages)
    assert (last.count("This is a heartbeat"), DRY in last, "I look." in last) == (1, True, False)
    assert OK not in "".join(str(one) for one in words[-1].messages if one["role"] == "assistant")
    before = words[0]
    for request in model.requests[1:]:  # a heartbeat turn continues what was before it, and so does what follows it
        assert blocks(request)[: len(blocks(before))] == blocks(before), request.number
        assert fixed(request) == fixed(before)
        before = before if is_heartbeat(request) else request
    assert play.told == [DRY]


async def test_isolated_turns_bring_no_history_have_a_model_of_their_own_and_cost_little(tmp_path: Path) -> None:
    settings = {"isolated": True, "light_context": True, "model": "house/small", "thinking": "off"}
    async with asked(tmp_path, **settings) as (play, model):
        for name in ("USER.md", "AGENTS.md", "MEMORY.md"):
            (play.file.parent / name).write_text(f"The cellar of {name}\n")
        async with play.stage.serving():
            await play.hello(" ".join(["a long story"] * 50))
            await play.days(0.25)
            model.add(LOOK)
            await play.turn()
            play.answer = DRY
            await play.turn()
            await play.hello("what was that?")
    turns = [request for request in model.requests if request.model == "small"]
    words = [request for request in model.requests if request.model == "some-model"]
    assert [len(request.messages) for request in turns] == [1] * 7 + [3, 1]
    assert all(
        is_heartbeat(request) and "tomatoes" in request.last_user_text
        for request in turns
        if len(request.messages) == 1
    )
    assert blocks(turns[0])[:-1] == blocks(turns[1])[:-1]
    assert not [request for request in turns if "long story" in str(request.body) or "cellar" in request.system]
    assert max(len(request.raw) / 4 for request in turns if len(request.messages) == 1) < 3700
    thinks = [request.body.get("thinking", {"type": "disabled"})["type"] != "disabled" for request in model.requests]
    assert thinks == [request.model == "some-model" for request in model.requests]
    check_prefixes(words)
    assert (len(words), len(words[-1].messages)) == (2, 3)
    assert DRY in str(words[-1].messages)
    assert play.told == [DRY]
