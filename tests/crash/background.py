"""What happens by itself, in a dozen scenarios: beats and jobs, and what people do meanwhile."""

from collections.abc import Awaitable, Callable

from bot.persistence.schedules import HEARTBEAT
from heartbeat.schedule import At, Every
from tests.crash.scenarios import Scenario, asked, said
from tests.crash.world import World

HOURS = 12
"""Between beats and due times, which nobody waits for: the clocks leap."""
EVERY = HOURS * 3_600_000
BEATS = {"every": f"{HOURS}h", "isolated": False, "light_context": False}
TASKS = """tasks:
  - name: mail
    interval: 12h
    prompt: urgent mail?
  - name: news
    interval: 1d
    prompt: news?
"""
Person = Callable[[World], Awaitable[None]]


async def _first(world: World) -> None:
    """Somebody writes; what the service does at its start is over."""
    world.platform.write("A", "A1 1p")
    await world.quiet()


def _beats(*scripts: str, tasks: str = "", faults: tuple[str, ...] = ()) -> Person:
    """One beat after the other; somebody writes before and after, and so every request of the session is seen."""

    async def person(world: World) -> None:
        await _first(world)
        world.platform.fail_next("A", *faults)  # type: ignore[arg-type]
        for script in scripts:
            world.checklist(script, tasks)
            world.leap(HOURS)
            await world.quiet()
        world.platform.write("A", "A2 1p")

    return person


async def _missed(world: World) -> None:
    """Days in which nobody was there, then a rest that lasts."""
    await _first(world)
    world.checklist("A50 1p")
    world.leap(5.5 * HOURS)
    await world.quiet()
    await world.pause(HEARTBEAT)
    world.leap(2 * HOURS)
    world.platform.write("A", "A2 1p")


async def _wake(world: World) -> None:
    await _first(world)
    world.checklist("A50 look | 1p")
    await world.wake("the bell rang")
    await world.quiet()
    world.platform.write("A", "A2 1p")


async def _held(world: World) -> bool:
    """A beat that is under way; False when it was cut before anybody saw it."""
    await _first(world)
    world.checklist("A50 1p+count | 1p+hold+look | 1p")
    world.leap(HOURS)
    await world.until(lambda: world.held["A50"] > 0)
    return world.held["A50"] > 0


async def _written_meanwhile(world: World) -> None:
    await _held(world)
    world.platform.write("A", "A2 1p", "A3 1p")
    await world.until(lambda: world.has(world.platform.updates[-1]))
    world.open_gate("A50")


def _call_apart(script: str, *, job: bool = False) -> Person:
    """Somebody writes while a call runs, and is answered before it has ended."""

    async def person(world: World) -> None:
        await _first(world)
        if job:
            await world.plan("J1", At(world.now() + EVERY), script, own=False)
        else:
            world.checklist(script)
        world.leap(HOURS)
        await world.until(lambda: world.held["wait"] > 0)
        world.platform.write("A", "A2 1p", "A3 1p")
        await world.until(lambda: said(world, "A3.8"))
        world.open_gate("wait")
        await world.quiet()
        world.platform.write("A", "A4 1p")

    return person


async def _stopped(world: World) -> None:
    await _held(world)
    world.platform.write("A", "A2 1p", "/stop")
    await world.until(lambda: said(world, "top") or said(world, "Nothing"))
    world.open_gate("A50")
    world.platform.write("A", "A3 1p")


def _once(script: str, *, own: bool = True) -> Person:
    async def person(world: World) -> None:
        await _first(world)
        await world.plan("J1", At(world.now() + EVERY), script, own=own)
        world.leap(HOURS)
        await world.quiet()
        world.platform.write("A", "A2 1p")

    return person


def _again_and_again(script: str, *, own: bool) -> Person:
    """On time, after days in which nobody was there, and no more."""

    async def person(world: World) -> None:
        await _first(world)
        await world.plan("J1", Every(EVERY, world.now()), script, own=own)
        for count in (1, 3.5):
            world.leap(count * HOURS)
            await world.quiet()
        await world.delete("J1")
        world.leap(2 * HOURS)
        world.platform.write("A", "A2 1p")

    return person


async def _stopped_before(world: World) -> None:
    """A reminder that waits behind what is stopped."""
    await world.plan("J1", At(world.now() + EVERY), "A50 1p", own=False)
    world.platform.write("A", "A1 1p+hold | 1p")
    await world.until(lambda: world.held["A1"] > 0)
    world.leap(HOURS)
    await world.until(lambda: bool(world.stored.firings(job_id="J1")))
    world.platform.write("A", "/stop")
    await world.until(lambda: said(world, "top") or said(world, "Nothing"))
    world.open_gate("A1")
    await world.quiet()
    world.platform.write("A", "A2 1p")


async def _written_meanwhile_in_a_job(world: World) -> None:
    await world.plan("J1", At(world.now() + EVERY), "A50 1p+count | 1p+hold+look | 1p", own=False)
    world.leap(HOURS)
    await world.until(lambda: world.held["A50"] > 0)
    world.platform.write("A", "A2 1p", "A3 1p")
    await world.until(lambda: world.has(world.platform.updates[-1]))
    world.open_gate("A50")


async def _asking(world: World) -> None:
    """Somebody writes while a beat waits for a decision."""
    await _first(world)
    world.checklist("A50 1p+look+ask+count | 1p")
    world.leap(HOURS)
    if await asked(world):
        world.platform.write("A", "A2 1p")
        ((ident,),) = world.stored.approvals("approval_id", state="open")
        await world.decide(ident, "once")
    world.platform.write("A", "A3 1p")


async def _several(world: World) -> None:
    """Beat and jobs at one moment, more than may run at once."""
    await _first(world)
    world.checklist("H1 1p")
    for token in "JKL":
        await world.plan(f"{token}1", At(world.now() + EVERY // 2), f"{token}1 1p")
    world.leap(HOURS)
    await world.quiet()
    world.platform.write("A", "A2 1p")


BACKGROUND = (
    Scenario("alert", _beats("A50 2p", "A51 ok"), background=BEATS),
    Scenario("quiet", _beats("A50 ok", "A51 look | ok"), background=BEATS),
    Scenario("beat-with-tools", _beats("A50 count | 1p+tell | 1p", "A51 count | stay_silent"), background=BEATS),
    Scenario("isolated", _beats("H1 1p+look | 1p", "H2 ok"), background={**BEATS, "isolated": True}),
    Scenario("tasks", _beats("A50 count | ok", "A51 1p", tasks=TASKS), background=BEATS),
    Scenario("missed-beats", _missed, background=BEATS),
    Scenario("wake", _wake, background=BEATS),
    Scenario("written-meanwhile", _written_meanwhile, background=BEATS),
    Scenario("call-apart", _call_apart("A50 1p+wait+count | 1p+look | 1p"), background=BEATS),
    Scenario("quiet-call-apart", _call_apart("A50 wait | count | ok"), background=BEATS),
    Scenario("call-of-a-job-apart", _call_apart("A50 1p+wait+count | 1p", job=True), background={}),
    Scenario("stopped-beat", _stopped, background=BEATS),
    Scenario("asking-beat", _asking, background=BEATS),
    Scenario("refused-alert", _beats("A50 1p", "A51 ok", faults=("refused",)), background=BEATS),
    Scenario("doubtful-alert", _beats("A50 1p", faults=("answer_lost", "request_lost")), background=BEATS),
    Scenario("broken-beat", _beats("A50 2p+break", "A51 1f+1p"), background=BEATS),
    Scenario("reminder", _once("J1 1p+look | 1p"), background={}),
    Scenario("reminder-in-session", _once("A50 1p", own=False), background={}),
    Scenario("reminder-tried-again", _once("J1 2f+1p"), background={}),
    Scenario("reminder-and-stop", _stopped_before, background={}),
    Scenario("reminder-written-meanwhile", _written_meanwhile_in_a_job, background={}),
    Scenario("recurring", _again_and_again("J1 1p", own=True), background={}),
    Scenario("recurring-in-session", _again_and_again("A50 count | 1p", own=False), background={}),
    Scenario("several-jobs", _several, background={**BEATS, "isolated": True}),
)
