"""Calls of one step that need a decision are one request, and what is allowed may have an end."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.approvals.decisions import NotDecided
from bot.persistence.approvals import Choice
from channels.message import Quoted
from tests.asking import approval
from tests.bot.approvals.test_approvals import labels, order, shows
from tests.bot.approvals.test_parking import over, results
from tests.service import Hark, ScriptedTool, running, session_of
from tests.standins.script import Call

KEY = session_of("1")
CONFIG = {"tools": {"require_approval": ["*"]}, "owners": ["telegram:1"]}


class Acts(list[str]):
    """The labels of the calls that ran, in order."""

    def tools(self, watch: object) -> Sequence[ScriptedTool]:
        """For `running`."""

        async def act(label: str) -> str:
            self.append(label)
            return f"did {label}"

        return [ScriptedTool("act", act, watch)]  # type: ignore[arg-type]


async def asks(hark: Hark, *made: str, count: int = 1, then: str = "done") -> str:
    """Let the model make these calls in one step; returns the id of the request, the one of that number."""
    hark.model.add(*(Call("act", {"label": label}) for label in made))
    if then:
        hark.model.add(then)
    await hark.write("do it")
    ident = await approval(hark, count)
    await hark.delivered()
    return ident


async def ended(hark: Hark, turns: int = 1) -> None:
    """So many turns are over."""
    await hark.until(lambda: len([end for end in hark.ends(KEY) if end.is_last]) == turns, "the end")
    await hark.delivered()


async def test_all_are_shown_in_full_and_allowed_together(tmp_path: Path) -> None:
    acts = Acts()
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        await asks(hark, "one", "two", "three")
        (shown,) = shows(hark)
        assert "May I run these 3?" in shown.body
        assert all(
            f'{number}.**\n```\nact {{"label":"{label}"}}' in shown.body
            for number, label in enumerate(("one", "two", "three"), 1)
        )
        assert labels(shown) == ["Allow all shown", "Always allow", "Deny"]
        assert acts == []
        await hark.write("yes")
        await over(hark)
        assert acts == ["one", "two", "three"]
        assert len(hark.stored.approvals()) == 1


@pytest.mark.parametrize("said", ["1 3", "only 1, 3", "/approve {} 1 3", "/approve {} 1,3"])
async def test_some_are_picked(tmp_path: Path, said: str) -> None:
    acts = Acts()
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        ident = await asks(hark, "one", "two", "three")
        await hark.write(said.format(ident[:8]))
        await over(hark)
        assert acts == ["one", "three"]
        assert [text.partition(";")[0] for text in results(hark)] == [
            "did one",
            "A person denied this call",
            "did three",
        ]
        assert hark.stored.approvals("state", "picked") == [("once", "[1, 3]")]


async def test_numbers_of_somebody_else_pick_none(tmp_path: Path) -> None:
    acts = Acts()
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        await asks(hark, "one", "two", "three", then="")
        shown = [one for one, buttons in hark.stored.deliveries("platform_id", "buttons") if buttons]
        passed_on = Quoted(author="Bo", text="1 3")
        await hark.write("1 3", forwarded=passed_on, reply_to=shown[0])
        await hark.until(lambda: len(hark.stored.deliveries("body")) > 1, "an answer")
        assert (acts, hark.stored.approvals("state")) == ([], [("open",)])


async def test_denied_none_runs(tmp_path: Path) -> None:
    acts = Acts()
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        ident = await asks(hark, "one", "two")
        await order(hark, f"/approve {ident} deny not today")
        await over(hark)
        assert acts == []
        assert all("not today" in text for text in results(hark))


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("/approve {} 4", "There is no call 4 in that; its numbers are 1 to 2."),
        ("/approve {} for 0s", "Write `/approve`"),
        ("/approve {} for ever", "Write `/approve`"),
        ("/approve {} for 99d", "Allow it for at most"),
    ],
)
async def test_what_cannot_be_meant_decides_nothing(tmp_path: Path, said: str, answer: str) -> None:
    acts = Acts()
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        ident = await asks(hark, "one", "two", then="")
        assert (await order(hark, said.format(ident))).startswith(answer)
        with pytest.raises(NotDecided, match="numbers of calls go with `once`"):
            await hark.service.parts.requests.settle(ident, Choice(verdict="denied", picked=(1,)))
        assert (acts, hark.stored.approvals("state")) == ([], [("open",)])


async def test_a_script_of_25_calls_is_one_question(tmp_path: Path) -> None:
    acts, made = Acts(), [f"call {number} {'x' * 300}" for number in range(25)]
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        hark.channel.rendered = lambda text: textwrap.wrap(text, 4000)
        ident = await asks(hark, *made)
        assert len(shows(hark)) > 2
        whole = "".join(one.body for one in shows(hark))
        assert all(whole.count(label) == 1 for label in made), "each stands in full in one of the messages"
        assert [bool(one.buttons) for one in shows(hark)] == [False] * (len(shows(hark)) - 1) + [True]
        await order(hark, f"/approve {ident} once")
        await over(hark)
        assert acts == made


async def test_what_changes_while_it_waits_is_asked_anew(tmp_path: Path) -> None:
    """A crash between the decision and the calls changes nothing about which of them are allowed."""
    acts = Acts()
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        ident = await asks(hark, "one", "two", then="")
        assert await hark.service.parts.store.approvals.decide(ident, Choice(verdict="once", picked=(2,)), "telegram:1")
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        hark.model.add("done")
        await over(hark)
        assert acts == ["two"]


async def test_what_is_allowed_for_a_time_ends_with_it(tmp_path: Path) -> None:
    acts = Acts()
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        ident = await asks(hark, "one", "two")
        assert "for 15m" in shows(hark)[-1].body
        await order(hark, f"/approve {ident} for 15m")
        await ended(hark)
        assert hark.stored.approvals("state", "until IS NULL") == [("always", 0)]
        listed = await order(hark, "/approvals")
        assert "Allowed for a time:\n- until " in listed
        assert "`act` with these arguments" in listed
        await hark.write("again", answers=[Call("act", {"label": "two"}), "done"])
        await ended(hark, 2)
        assert (acts, len(hark.stored.approvals())) == (["one", "two", "two"], 1)
        assert "call:" in "".join(hark.service.parts.requests.grants.of(KEY))
        assert not hark.service.parts.requests.grants.of(session_of("2")), "in this conversation alone"
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        assert hark.service.parts.requests.grants.of(KEY), "a restart does not end it"
        hark.time.advance(15 * 60)
        assert not hark.service.parts.requests.grants.of(KEY)
        assert await hark.service.parts.requests.grants.rules() == []
    async with running(tmp_path, config=CONFIG, tools=acts.tools) as hark:
        hark.time.advance(15 * 60)
        await asks(hark, "one", count=2, then="")
        assert len(acts) == 3
