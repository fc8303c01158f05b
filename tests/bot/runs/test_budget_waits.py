"""Turns that a budget has parked: what lets them go on, what does not, and what stays as it is meanwhile."""

from dataclasses import replace
from pathlib import Path

from agent.events import Outcome
from bot.commands.registry import Asker
from bot.gateway.agent_api import AgentApi
from bot.people.access import OWNER
from bot.runs.outages import OTHERWISE_EVERY
from channels.message import ChatKind, InboundKind, Place
from channels.session_key import http_key
from tests.bot.background.test_schedule import command
from tests.bot.runs.test_budgets import budget, most
from tests.service import Hark, running, session_of
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Call, Say
from tests.watch import lanes_idle

# Seconds.
_DAY = 24 * 3600
_API = Place(channel="http", account="", chat="x", kind=ChatKind.API)


async def press(hark: Hark, label: str, chat: str = "1") -> None:
    """Press a button of the newest message in a chat that has buttons."""
    offer = [one for one in hark.channel.sent if one.place.chat == chat and one.buttons][-1]
    sends = next(button.sends for button in offer.buttons if button.label == label)
    number = str(hark.channel.sent.index(offer) + 1)
    await hark.accept(replace(hark.message(sends, chat), kind=InboundKind.BUTTON, reply_to=number))


async def spent(hark: Hark, sender: str = "1") -> None:
    """Use the budget up, and park a turn."""
    assert (await hark.say("first", sender=sender, answers=["one"])).outcome is Outcome.COMPLETED
    hark.stored.spoil("UPDATE usage SET input=1000")
    assert (await hark.say("second", sender=sender)).outcome is Outcome.PARKED


async def pass_on(hark: Hark, seconds: float) -> None:
    """Let time pass once the service has begun to wait for its next look."""
    await hark.time.until_pause(OTHERWISE_EVERY)
    hark.time.advance(seconds)


async def test_a_new_day_lets_them_go_on_by_themselves(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(bot={"tokens": need + 300})) as hark:
        await spent(hark)
        await hark.write("third")
        await lanes_idle()
        assert hark.stored.turns("epoch", over="bot") == [(1,)]
        hark.model.add("both")
        await pass_on(hark, _DAY)
        assert "both" in (await hark.until_texts(3))[-1]
        await lanes_idle()
        assert "second" in hark.model.requests[1].messages[-1].text


async def test_they_wait_over_a_restart_and_are_not_told_again(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    config = budget(bot={"tokens": need + 300})
    async with running(tmp_path, config=config) as hark:
        await spent(hark)
        time = hark.time
    async with running(tmp_path, config=config, time=time) as hark:
        assert hark.stored.turns("state", "epoch", over="bot") == [("parked", 1)]
        assert hark.channel.texts() == []
        hark.model.add("two")
        await pass_on(hark, _DAY)
        assert "two" in (await hark.until_texts(1))[-1]


async def test_a_larger_budget_lets_them_go_on_at_the_next_start(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(bot={"tokens": need + 300})) as hark:
        await spent(hark)
    async with running(tmp_path, config=budget(bot={"tokens": 10 * need})) as hark:
        assert await hark.until_texts(1) == ["echo: [Tue 2026-07-14 03:33 UTC]\nsecond"]


async def test_an_owner_allows_more_for_all_who_wait_for_it_and_only_once(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(bot={"tokens": need + 100})) as hark:
        await spent(hark)
        assert (await hark.say("from two", sender="2")).outcome is Outcome.PARKED
        listed = await command(hark, "/budget")
        assert listed.count("the budget of this bot, until Wed 2026-07-15 00:00 UTC") == 2
        for answer in ("again one", "again two"):
            hark.model.add(answer)
        await press(hark, "As much again")
        await press(hark, "As much again")
        await hark.until(lambda: len(hark.stored.turns(state="done")) == 3, "all turns")
        await hark.delivered()
        assert len(hark.stored.everything()["budget_raise"]) == 1
        assert "/budget" not in await command(hark, "/help", "2")


async def test_whoever_allows_it_a_moment_later_allows_nothing(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(bot={"tokens": need + 300})) as hark:
        await spent(hark)
        rows = hark.service.parts.store.budget_waits
        (waiting,) = await rows.waiting()
        assert await rows.allow_more(101, waiting, 0) == [session_of("1")]
        assert await rows.allow_more(102, waiting, 0) == ()
        assert len(hark.stored.everything()["budget_raise"]) == 1


async def test_tomorrow_changes_nothing_and_stop_ends_it(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(bot={"tokens": need + 300})) as hark:
        await spent(hark)
        await press(hark, "Tomorrow")
        await hark.until(lambda: "It goes on at Wed 2026-07-15 00:00 UTC." in hark.channel.texts(), "the answer")
        assert sorted(hark.stored.turns("state")) == [("done",), ("parked",)]
        await command(hark, "/stop")
        assert sorted(hark.stored.turns("state")) == [("done",), ("stopped",)]
        assert await command(hark, "/budget more") == "No turn waits for a budget."
        assert hark.stored.everything()["budget_raise"] == []


async def test_who_is_no_owner_cannot_allow_more(tmp_path: Path) -> None:
    async with running(tmp_path, config=budget(user={"tokens": 1})) as hark:
        assert (await hark.say("x", sender="2")).outcome is Outcome.PARKED
        assert not any(sent.buttons for sent in hark.channel.sent if sent.place.chat == "2")
        assert hark.service.parts.pipeline.registry.get("budget", Asker(is_owner=False)) is None


async def test_a_cheaper_model_goes_on(tmp_path: Path) -> None:
    async with OpenAIServer() as server:
        models = {
            "dear": {"price": {"input": 100, "output": 1000}},
            "cheap": {"price": {"input": 0.01, "output": 0.01}},
        }
        provider = {"api": "openai-chat", "base_url": server.base_url, "api_keys": ["test-key"], "models": models}
        config = {"agent": {"model": "one/dear"}, "providers": {"one": provider}, **budget(user={"money": 0.5})}
        async with running(tmp_path, config=config, chosen=True) as hark:
            reply = await hark.say("x")
            assert reply.outcome is Outcome.PARKED
            assert "`/budget cheaper` goes on with `one/cheap`" in reply.texts[-1]
            server.add(Say("From cheap."))
            await press(hark, "Go on with one/cheap")
            await hark.until(lambda: "From cheap." in hark.channel.texts(), "the answer")
            await lanes_idle()
            assert [request.body["model"] for request in server.requests] == ["cheap"]
            server.add(Say("Still cheap."))
            assert (await hark.say("y")).texts == ["Still cheap."]


async def test_nothing_is_done_twice_when_it_goes_on(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(turn={"tokens": need + 30})) as hark:
        hark.model.add(Call("write", {"path": "a.txt", "content": "once " * 200}))
        assert (await hark.say("x")).outcome is Outcome.PARKED
        (hark.service.parts.workspace / "a.txt").write_text("mine")
        hark.model.add("done")
        await command(hark, "/budget more")
        await hark.until(lambda: hark.stored.turns(state="done") != [], "the end")
        assert (hark.service.parts.workspace / "a.txt").read_text() == "mine"


async def test_one_that_no_day_helps_is_given_up_at_last(tmp_path: Path) -> None:
    async with running(tmp_path, config=budget(user={"tokens": 1})) as hark:
        assert (await hark.say("x")).outcome is Outcome.PARKED
        await pass_on(hark, _DAY + OTHERWISE_EVERY)
        assert "given up" in (await hark.until_texts(2))[-1]
        assert hark.stored.turns("state", "error_kind") == [("failed", "budget")]


async def test_a_program_is_told_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=budget(session={"tokens": 1})) as hark:
        api: AgentApi = hark.service.parts.api
        view = await api.submit("x", http_key("x"), _API, OWNER)
        assert view is not None
        await hark.until(lambda: hark.stored.turns("outcome") == [("limit",)], "the end")
