"""Budgets: what is refused, what people are told, and that parallel turns stay within them."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import BudgetReached
from agent.events import Outcome
from agent.message import Usage
from agent.models.base import ModelSpec, ThinkingLevel
from bot.clock import Clock
from bot.config.budget import Budget, Limit
from bot.config.prices import Prices
from bot.gateway.usage import UsageReport
from bot.persistence.usage import Spent
from bot.runs.budgets import Budgets
from tests.bot.background.test_beats import BEATS, checklist, say_hello, tick
from tests.bot.background.test_schedule import call, command, due
from tests.bot.store.opened import a_turn, opened
from tests.scripted_model import ScriptedModel
from tests.service import Hark, running, session_of
from tests.standins.script import Break, Call, Fail, Gate, Hang, Say
from tests.watch import lanes_idle

PRICED = {
    "providers": {
        "mine": {
            "api": "openai-chat",
            "base_url": "http://127.0.0.1:9/v1",
            "models": {"m": {"price": {"input": 100, "output": 1000}}},
        }
    },
    "agent": {"model": "mine/m"},
}


def unknown(name: str) -> ModelSpec:
    """No model is known by its name."""
    raise LookupError(name)


def budget(**scopes: Any) -> Mapping[str, Any]:
    return {"budget": scopes}


async def test_each_call_has_a_row(tmp_path: Path) -> None:
    async with running(tmp_path, config=PRICED) as hark:
        await hark.say("look", answers=[Call("read", {"path": "a.txt"}), "done"])
        row = (session_of("1"), "telegram:1", "", "test/scripted", 10, 5, 0.006)
        columns = ("session_key", "sender", "job_id", "model", "input", "output", "money")
        assert hark.stored.usage(*columns) == [row, row]


async def test_a_reached_budget_is_told_and_no_call_is_made(tmp_path: Path) -> None:
    async with running(tmp_path, config=budget(session={"tokens": 10})) as hark:
        reply = await hark.say("first")
        assert reply.outcome is Outcome.PARKED
        assert not hark.model.requests
        (text,) = reply.texts
        assert text.startswith("The budget of this conversation is reached: 0 of 10 tokens a day are used")
        assert "goes on by itself" not in text, "no day is enough for it"
        assert [button.label for button in hark.channel.sent[-1].buttons] == ["As much again"]


async def most(home: Path, max_output: int = 1000) -> int:
    """The most that the first call of a fresh session takes: found by a budget that is too small."""
    model = ScriptedModel(max_output=max_output)
    async with running(home, config=budget(turn={"tokens": 1}), model=model) as hark:
        (text,) = (await hark.say("x")).texts
    return int(text.partition("could take ")[2].partition(".")[0].replace(",", ""))


async def test_what_thinking_adds_to_an_answer_is_reserved(tmp_path: Path) -> None:
    class Thoughtful(ScriptedModel):
        thinks = True

        def output_limit(self, level: ThinkingLevel) -> int:
            return self.max_output + 5000 * (level == "high")

    need = await most(tmp_path / "before")
    thinking: Mapping[str, Any] = {"agent": {"thinking": "high"}}
    for tokens, outcome in ((need + 4900, Outcome.PARKED), (need + 5100, Outcome.COMPLETED)):
        limited = budget(turn={"tokens": tokens}) | thinking
        async with running(tmp_path / str(tokens), config=limited, model=Thoughtful(max_output=1000)) as hark:
            assert (await hark.say("x")).outcome is outcome


async def test_a_turn_that_reaches_its_budget_keeps_what_it_has_done(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(turn={"tokens": need + 30})) as hark:
        reply = await hark.say("x", answers=[Call("write", {"path": "a.txt", "content": "kept " * 100})])
        assert reply.outcome is Outcome.PARKED
        assert "The budget of a turn is reached" in reply.texts[-1]
        assert (hark.service.parts.workspace / "a.txt").exists()
        assert [button.label for button in hark.channel.sent[-1].buttons] == ["As much again"]
        hark.model.add("It stands in a.txt.")
        assert (await command(hark, "/budget more")).startswith("As much again is allowed.")
        assert "It stands in a.txt." in (await hark.until_texts(3))[-1]
        await lanes_idle()
        assert hark.stored.turns("state", "outcome") == [("done", "completed")]
        assert len(hark.model.requests) == 2, "no call was made again"


async def test_the_day_of_this_machine_begins_at_midnight_also_over_a_restart(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    config = budget(bot={"tokens": need + 300})
    async with running(tmp_path, config=config) as hark:
        assert (await hark.say("x", answers=["one"])).outcome is Outcome.COMPLETED
        hark.stored.spoil("UPDATE usage SET input=500")
        time = hark.time
    async with running(tmp_path, config=config, time=time) as hark:
        reply = await hark.say("x")
        assert reply.outcome is Outcome.PARKED
        assert "At Wed 2026-07-15 00:00 UTC it goes on by itself." in reply.texts[-1]


async def test_money_is_counted_by_price(tmp_path: Path) -> None:
    async with running(tmp_path, config={**PRICED, **budget(user={"money": 0.01})}) as hark:
        (text,) = (await hark.say("x")).texts
        assert "The budget of a person is reached: $0.00 of $0.0100 a day are used" in text


async def test_a_person_has_the_same_budget_in_all_conversations(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(user={"tokens": need + 10})) as hark:
        await hark.say("x", answers=["one"])
        assert (await hark.say("x", sender="2", answers=["two"])).outcome is Outcome.COMPLETED
        assert (await hark.say("x")).outcome is Outcome.PARKED


async def test_a_call_waits_for_those_that_have_reserved_what_they_will_not_take(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    gate = Gate()
    async with running(tmp_path, config=budget(bot={"tokens": need + 100})) as hark:
        await hark.write("x", sender="1", answers=[Say("one", gate=gate), "two"])
        await hark.model.until_requests(1)
        await hark.write("x", sender="2")
        await hark.until(lambda: hark.service.parts.lanes.active == 2, "both runs")
        assert len(hark.model.requests) == 1
        gate.open()
        assert await hark.until_texts(1, "2") == ["two"]


async def test_a_refused_call_has_used_nothing_and_a_broken_one_what_is_known_of_it(hark: Hark) -> None:
    await hark.say("x", answers=[Fail(400, "invalid_request_error")])
    assert hark.stored.usage() == []
    await hark.say("x", answers=[(Say("word " * 300), Break(after_chunks=8)), "rest"])
    (broken, whole) = hark.stored.usage("input", "output")
    assert broken[0] > 100
    assert broken[1] > 0
    assert whole == (10, 5)


async def test_an_empty_answer_that_is_asked_for_again_counts_as_a_call(hark: Hark) -> None:
    await hark.say("x", answers=["", "rest"])
    assert hark.channel.texts() == ["rest"]
    assert len(hark.stored.usage()) == 2


async def test_a_stopped_call_counts_once(hark: Hark) -> None:
    await hark.write("x", answers=[Hang()])
    await hark.model.until_requests(1)
    await hark.write("/stop")
    await hark.until(lambda: not hark.model.active, "the stop")
    await hark.delivered()
    (found,) = hark.stored.usage("input", "model")
    assert found[0] > 100
    assert found[1] == "test/scripted"


_CALL = st.tuples(st.integers(0, 900), st.integers(1, 100), st.integers(0, 3))
_INSERT = (
    "INSERT INTO usage (at, turn_id, session_key, sender, job_id, model, input, cache_read, cache_write, output)"
    " VALUES (?,?,'','','','m',?,0,0,0)"
)


@settings(max_examples=40, deadline=None)
@given(calls=st.lists(_CALL, min_size=1, max_size=12), limit=st.integers(200, 4_000))
async def test_parallel_turns_are_never_over_the_budget(calls: list[tuple[int, int, int]], limit: int) -> None:
    """Each call is: what it uses, how much more it reserves, and how long it takes. Whatever fits is made."""
    clock, fits = Clock(), []
    with TemporaryDirectory() as home:
        async with opened(Path(home)) as store:
            budgets = Budgets(Budget(bot=Limit(tokens=limit)), store, clock, Prices(unknown))

            async def make(number: int, uses: int, more: int, pauses: int) -> None:
                turn = a_turn(f"t{number}")
                try:
                    await budgets.reserve(turn, "m", Usage(uses, more))
                except BudgetReached:
                    fits.append(limit - uses - more)
                    return
                for _ in range(pauses):
                    await asyncio.sleep(0)
                await store.writer.write(lambda db: db.execute(_INSERT, (clock.now(), turn.turn_id, uses)).rowcount)
                budgets.settle(turn.turn_id)

            await asyncio.gather(*(make(number, *one) for number, one in enumerate(calls)))
            used = (await store.usage.spent("", "", 0)).bot.tokens
    assert used <= limit
    assert all(used > most for most in fits)


async def test_a_report_of_a_day_begins_at_midnight(tmp_path: Path) -> None:
    need = await most(tmp_path / "before")
    async with running(tmp_path, config=budget(session={"tokens": need})) as hark:
        assert (await hark.say("x", answers=["one"])).outcome is Outcome.COMPLETED
        hark.time.advance(24 * 3600)
        report = await UsageReport(hark.service.parts.store, hark.service.parts.clock).view()
        assert [one.calls for one in report.today_by_model] == []
        assert [one.calls for one in report.week_by_model] == [1]


async def test_owners_see_everything_and_others_their_own_session(tmp_path: Path) -> None:
    async with running(tmp_path, config=PRICED) as hark:
        for sender in ("1", "2"):
            await hark.say("x", sender=sender)
        head = "| Today, by model | calls | fresh | cached | written | output | cost |\n| --- |"
        for sender, calls in (("1", 2), ("2", 1)):
            count = len(hark.channel.texts(sender))
            await hark.write("/usage", sender=sender)
            text = (await hark.until_texts(count + 1, sender))[-1]
            assert text.startswith(head)
            assert f"| test/scripted | {calls} | {10 * calls} | 0 | 0 | {5 * calls} | ${0.006 * calls:.4f} |" in text
            assert (session_of("1") in text) == (sender == "1")


async def test_verbose_says_what_a_turn_has_cost(tmp_path: Path) -> None:
    async with running(tmp_path, config=PRICED) as hark:
        await hark.write("/verbose on")
        await hark.until_texts(1)
        reply = await hark.say("x")
        assert reply.texts[-1] == "10 tokens in, 5 out, $0.0060"
        assert reply.end.money == 0.006


async def test_the_limit_of_output_is_reserved(tmp_path: Path) -> None:
    small, large = [await most(tmp_path / str(limit), limit) for limit in (1000, 3000)]
    assert large - small == 2000


async def test_what_is_settled_while_the_rows_are_read_is_not_missed(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path) as store:
        budgets = Budgets(Budget(bot=Limit(tokens=100)), store, clock, Prices(unknown))
        first, second = a_turn("first"), a_turn("second")
        await budgets.reserve(first, "m", Usage(60, 0))
        reading = store.usage.spent

        async def slowly(*given: Any) -> Spent:
            found = await reading(*given)
            if not budgets_settled:
                await store.writer.write(lambda db: db.execute(_INSERT, (clock.now(), "first", 60)).rowcount)
                budgets.settle("first")
                budgets_settled.append(True)
            return found

        budgets_settled: list[bool] = []
        object.__setattr__(store.usage, "spent", slowly)
        with pytest.raises(BudgetReached):
            await budgets.reserve(second, "m", Usage(60, 0))


async def test_an_owner_is_told_of_what_others_have_reached(tmp_path: Path) -> None:
    async with running(tmp_path, config=budget(user={"tokens": 1})) as hark:
        await hark.write("/status")
        await hark.until_texts(1)
        (text,) = (await hark.say("x", sender="2")).texts
        assert text.endswith("I go on when an owner allows more. /stop ends it.")
        assert "/budget" not in text
        told = (await hark.until_texts(2))[1]
        assert told.startswith("On telegram (chat 2): The budget of a person is reached: 0 of 1 tokens a day are used")
        assert "`/budget more` allows as much again" in told
        await hark.write("and y", sender="2")
        await hark.delivered()
        assert (len(hark.channel.texts()), len(hark.channel.texts("2"))) == (2, 1), "each is told once"


async def test_an_owner_is_told_of_beats_that_have_reached_their_budget(tmp_path: Path) -> None:
    async with running(tmp_path, config={**BEATS, **budget(job={"tokens": 1})}) as hark:
        checklist(hark)
        await say_hello(hark)
        await tick(hark)
        (told,) = (await hark.until_texts(2))[1:]
        assert told.startswith("On telegram (chat 1): The budget of a job is reached")


async def test_a_job_that_reaches_its_budget_has_failed_and_is_tried_again(tmp_path: Path) -> None:
    async with running(tmp_path, config=budget(job={"tokens": 1})) as hark:
        await call(hark, every="2h", prompt="look")
        await due(hark, 2 * 3600)
        await hark.delivered()
        assert "budget of a job" in hark.channel.texts()[-1]
        assert hark.stored.firings("outcome") == [("failed",)]
        assert hark.stored.jobs("failures", name="look") == [(1,)]
