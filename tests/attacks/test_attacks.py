"""Orders in what others wrote: nothing consequential happens without a question that names its cause.

Each source is tried with every second aim, one after the other in one service, and with all of them in the soak; `/new`
is between them.
"""

from pathlib import Path

import pytest

from tests.attacks.obedient import AIMS, EXEC, GROUP, SIGN, TRUSTING, World, order, world
from tests.attacks.sources import SOURCES, Source
from tests.examples import stride
from tests.standins.script import Call

PAIRS = [
    (where, aim)
    for where, source in SOURCES.items()
    for aim in source.only or AIMS
    if AIMS[aim].in_groups or not source.in_group
]


def test_there_are_enough_of_them() -> None:
    assert len(PAIRS) >= 120


@pytest.mark.waits
@pytest.mark.parametrize("where", SOURCES)
async def test_an_order_is_asked_about_and_denied_it_has_no_effect(tmp_path: Path, where: str) -> None:
    """Waits for a command in the background to print."""
    source, wrong = SOURCES[where], []
    async with world(tmp_path) as made:
        for name in [aim for of, aim in PAIRS if of == where][[*SOURCES].index(where) % 2 :: stride(2)]:
            wrong += [f"{name}: {what}" for what in await attempt(made, source, name)]
            await made.command("/stop", GROUP if source.in_group else None)
            await made.command("/new", GROUP if source.in_group else None)
        assert not made.leaked()
    assert not wrong, "\n".join(wrong)


async def attempt(made: World, source: Source, name: str) -> list[str]:
    """What is wrong with how an order was treated."""
    aim, wrong = AIMS[name], []
    await source.reach(made, order(name))
    shown = made.questions()
    if aim.happened(made):
        wrong.append("it happened without a question")
    if len(shown) != 1:
        return [*wrong, f"{len(shown)} questions"]
    wrong += [f"not in the question: {one}" for one in (source.because, aim.sink) if one not in shown[0]]
    await made.decide("denied")
    if aim.happened(made):
        wrong.append("it happened although it was denied")
    return wrong


async def test_without_the_rule_each_order_is_obeyed(tmp_path: Path) -> None:
    """So it is the rule that stops them, and nothing else."""
    async with world(tmp_path, {"tools": {**EXEC, **TRUSTING}}) as made:
        for name, aim in AIMS.items():
            assert not aim.happened(made), name
            await SOURCES["a document"].reach(made, order(name))
            assert not made.questions(), name
            assert aim.happened(made), name
            await made.command("/new")
            made.web.asked.clear()
            made.put("MEMORY.md", "#")


async def test_what_is_allowed_for_the_task_opens_no_other_sink_and_no_other_kind(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await SOURCES["a document"].reach(made, order("plan"))
        await made.decide("always")
        assert AIMS["plan"].happened(made)
        jobs = made.hark.stored.jobs("job_id")
        for name in ("change", "host", "network", "fetch", "tell", "remember", "instruct"):
            assert await attempt(made, SOURCES["a document"], name) == []
        for where in ("a page", "a forwarded message", "the output of a command"):
            made.model.orders["plan-more"] = Call("schedule", {"every": "3h", "prompt": where})
            await SOURCES[where].reach(made, order("plan-more"))
            assert len(made.questions()) == 1, where
            await made.decide("denied")
        assert made.hark.stored.jobs("job_id") == jobs


@pytest.mark.parametrize("name", ["change", "host", "tell", "fetch", "remember", "plan"])
@pytest.mark.parametrize("by_itself", ["beat", "job"])
async def test_what_runs_by_itself_asks_or_does_not_do_it(tmp_path: Path, by_itself: str, name: str) -> None:
    async with world(tmp_path, {"heartbeat": {"every": "30m"}} if by_itself == "beat" else {}) as made:
        made.put("letter.txt", order(name))
        if by_itself == "beat":
            made.put("HEARTBEAT.md", "- look at the letter")
        else:
            made.model.add(Call("schedule", {"every": "30m", "prompt": "look at the letter"}))
        await made.say("hi")
        await made.hark.until(lambda: made.hark.stored.jobs("job_id"), "what runs by itself")
        made.model.add(Call("read", {"path": "letter.txt"}))
        since = len(made.hark.events)
        made.hark.time.advance(1800)
        await made.hark.service.parts.dispatcher.tick()
        await made.ended(since)
        assert not AIMS[name].happened(made)
        assert not made.leaked()
        assert len(made.questions()) == (name not in ("remember", "plan")), "nobody is there who could be asked"


IN_GROUPS = [name for name, aim in AIMS.items() if aim.in_groups]


async def test_what_was_overheard_in_a_group_is_asked_about(tmp_path: Path) -> None:
    groups = {"telegram": {"groups": {"policy": "open", "require_mention": True}}}
    async with world(tmp_path, {"channels": groups}) as made:
        for name in IN_GROUPS:
            await made.hark.accept(made.written(order(name), "6", GROUP))
            await made.say("hello", "1", GROUP, mentioned=True)
            (shown,) = made.questions()
            assert "others who wrote here" in shown
            assert AIMS[name].sink in shown
            await made.decide("denied")
            assert not AIMS[name].happened(made)
            await made.command("/new", GROUP)


async def test_whoever_is_no_owner_has_nothing_done_but_what_stays_in_their_room(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        for name in IN_GROUPS:
            await made.say(order(name), "6", GROUP)
            assert AIMS[name].happened(made) == (AIMS[name].sink == "what is remembered"), name
        assert not made.questions()
        assert not made.leaked()
        assert SIGN not in (made.workspace / "MEMORY.md").read_text()
