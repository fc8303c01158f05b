"""What must be true of beats and jobs when a world has come to rest, whatever happened in it."""

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agent.events import Outcome
from bot.persistence.causes import Cause
from bot.persistence.schedules import HEARTBEAT
from bot.store import codec
from bot.store.endings import TRIES
from heartbeat.schedule import At, Schedule, next_after
from tests.crash.script import parse, words_of
from tests.crash.world import World
from tests.stored import Like

_FAILED = (Outcome.FAILED, Outcome.TIMEOUT)
_GONE = ("failed", "expired")


@dataclass(frozen=True, slots=True)
class Run:
    """A firing with its turn. ledger: source, state, said, and step of all that it has put there."""

    job_id: str
    due_at: int
    until: int
    at: int
    cause: str
    reason: str
    turn_id: str
    told: str
    tasks: tuple[str, ...]
    outcome: str
    turn: dict[str, Any] = field(default_factory=dict)
    ledger: tuple[tuple[str, str, str, int | None], ...] = ()


def check_background(world: World) -> list[str]:
    """Everything that is wrong; nothing in worlds without beats and jobs."""
    if world.background is None:
        return []
    firings = _runs(world)
    runs = [run for run in firings if run.turn_id]
    wrong = _one_row_for_each_due_time(world, firings)
    if lost := [run for run in runs if not run.turn]:
        return [*wrong, f"firings without their turns: {lost}"]
    for part in (_agree, _hidden, _cut, _words, _told, _reminders, _lost_alerts):
        wrong += part(world, runs)
    return wrong


def _runs(world: World) -> list[Run]:
    stored = world.stored
    runs = []
    names = ("kind", "state", "outcome", "error_kind", "crashes", "session_key")
    for job_id, due_at, until, at, cause, reason, turn_id, told, tasks, outcome in stored.firings():
        turns = stored.turns(*names, turn_id=turn_id) if turn_id else []
        turn = dict(zip(names, turns[0], strict=True)) if turns else {}
        ledger = tuple(stored.deliveries("source", "state", "said", "step", turn_id=turn_id)) if turn_id else ()
        tasks = tuple(json.loads(tasks))
        runs.append(Run(job_id, due_at, until, at, cause, reason, turn_id or "", told, tasks, outcome, turn, ledger))
    return runs


def _one_row_for_each_due_time(world: World, runs: list[Run]) -> list[str]:
    """Also for those that nobody was there for; none of what was paused or deleted."""
    wrong = []
    schedules: dict[str, tuple[Schedule, int | None]] = {
        job.job_id: (job.schedule, job.next_at) for job in world.jobs.values()
    }
    for schedule, created, next_at in world.stored.jobs(
        "schedule", "json_extract(schedule, '$.anchor')", "next_at", job_id=HEARTBEAT
    ):
        if next_at is None:  # switched off
            continue
        read = codec.SCHEDULE.load(schedule, None)
        assert read is not None
        schedules[HEARTBEAT] = (read, next_after(read, created))
    for job_id, (schedule, first) in schedules.items():
        rows = sorted((run.due_at, run.until, run.at) for run in runs if run.job_id == job_id and run.cause[0] in "dl")
        wrong += [
            f"{job_id}: {before} and {after} overlap" for before, after in pairwise(rows) if before[1] >= after[0]
        ]
        over = world.over.get(job_id)
        at = first
        while at is not None and at <= (over or world.now()):
            covered = [row for row in rows if row[0] <= at <= row[1]]
            if len(covered) != 1:
                wrong.append(f"{job_id}: the due time {at} has {covered}")
            at = next_after(schedule, at)
        if over is not None and any(fired_at > over for _, _, fired_at in rows):
            wrong.append(f"{job_id} was over at {over}: {rows}")
    return wrong


def _agree(world: World, runs: list[Run]) -> list[str]:
    """Every firing with a turn has one, which answers one message and has ended as the firing says."""
    wrong = []
    unasked = world.stored.turns("turn_id", kind={"beat", "job"})
    if Counter(turn_id for (turn_id,) in unasked) != Counter(run.turn_id for run in runs):
        wrong.append(f"turns and firings differ: {unasked}, {[run.turn_id for run in runs]}")
    for run in runs:
        asked = world.stored.messages("kind", "turn_id", event_key=f"t:{run.job_id}:{run.due_at}")
        kind = ("wake", "beat") if run.job_id == HEARTBEAT else ("job", "job")
        if asked != [(kind[0], run.turn_id)] or run.turn.get("kind") != kind[1]:
            wrong.append(f"the firing {run} is the run of {asked}")
            continue
        outcome, states = Outcome(run.turn["outcome"]), {state for source, state, *_ in run.ledger}
        if outcome in _FAILED:
            possible = {"failed"}
        elif outcome is Outcome.ABORTED:
            possible = {"stopped"}
        else:
            possible = {"said"} if states - set(_GONE) else {"said", "quiet"} if states else {"quiet"}
        if run.outcome not in possible:
            wrong.append(f"the firing {run} should be one of {possible}")
    return wrong


def _hidden(world: World, runs: list[Run]) -> list[str]:
    """The lines of runs that have put nothing into the ledger, and no others."""
    wrong = []
    unasked = {run.turn_id: run for run in runs}
    lines: dict[str, list[int]] = {}
    for turn_id, hidden in world.stored.entries("turn_id", "hidden"):
        lines.setdefault(turn_id, []).append(hidden)
    for turn_id, hidden in lines.items():
        states = {state for _, state, *_ in unasked[turn_id].ledger} if turn_id in unasked else {"sent"}
        possible = ({1},) if not states else ({0},) if states - set(_GONE) else ({0}, {1})
        if set(hidden) not in possible:
            wrong.append(f"lines of {turn_id} are hidden: {hidden}, of {unasked.get(turn_id)}")
    return wrong


def _cut(world: World, runs: list[Run]) -> list[str]:
    """A beat that a death has cut is over, and its tasks are as they were."""
    wrong = []
    done: dict[str, int] = {}
    for run in (run for run in runs if run.job_id == HEARTBEAT):
        restart = (run.turn["state"], run.turn["error_kind"], run.outcome, run.reason)
        was_cut = run.turn["crashes"] > 0
        if was_cut != ("restart" in restart) or (was_cut and restart != ("stopped", "restart", "stopped", "restart")):
            wrong.append(f"the beat {run} has seen {run.turn['crashes']} deaths")
        if run.turn["outcome"] == Outcome.COMPLETED:
            done |= {f"task:{name}": max(run.due_at, done.get(f"task:{name}", 0)) for name in run.tasks}
    kept = {name: int(at) for name, at in world.stored.values(HEARTBEAT).items() if name.startswith("task:")}
    if kept != done:
        wrong.append(f"tasks were done at {done}, kept is {kept}")
    return wrong


def _words(world: World, runs: list[Run]) -> list[str]:
    """What a run has planned is the beginning of what it had to say, all of it once it is completed; and it is seen."""
    wrong = []
    visible = {shown.nonce for shown in world.platform.visible("A")}
    for run in runs:
        asked = world.stored.entries("body", kind="user", turn_id=run.turn_id)
        scripts = [parse("".join(part.get("text", "") for part in json.loads(body)["parts"])) for (body,) in asked]
        if not scripts or scripts[0] is None:
            continue
        script = scripts[0]
        quiet = run.job_id == HEARTBEAT and any("stay_silent" in step.calls for step in script.steps)
        whole = [] if quiet else list(range(script.words))
        said = words_of("\n".join(said for _, _, said, step in run.ledger if step is not None))
        words = [number for token, number in said if token == script.token]
        completed = run.turn["outcome"] == Outcome.COMPLETED
        if words != whole[: len(words)] or (completed and words != whole) or len(words) != len(said):
            wrong.append(f"{run} has said {said} of {script.token}, whose words are {len(whole)}")
        if run.job_id == HEARTBEAT and words and words != whole:
            wrong.append(f"a part of the beat {run} was shown: {words}")
    for source, nonce in world.stored.deliveries("source", "nonce", state="sent", action="send", chat="A"):
        if nonce not in visible and source.startswith(("turn:", "said-again:")):
            wrong.append(f"{source} counts as sent and was never seen")
    return wrong


def _told(world: World, runs: list[Run]) -> list[str]:
    """What is said into a conversation from elsewhere, its session is told of once; of what has given way perhaps."""
    wrong = []
    for run in runs:
        if run.told == run.turn["session_key"]:
            for source, _, said, _ in [row for row in run.ledger if row[3] is not None]:
                notes = world.stored.messages("reason", kind="event", event_key=source)
                bodies = [
                    body for (body,) in world.stored.entries("body", kind="user") if said and said.strip() in body
                ]
                if len(notes) > 1 or (said and len(bodies) != notes.count(("noted",))):
                    wrong.append(f"{source} of {run} was told as {bodies}, noted as {notes}")
            continue
        notes = world.stored.messages("reason", kind="event", event_key=Like(f"turn:{run.turn_id}:%"))
        elsewhere = run.told not in ("", run.turn["session_key"])
        live = [said for _, state, said, _ in run.ledger if state not in _GONE and said]
        gone = [said for _, state, said, _ in run.ledger if state in _GONE and said]
        if len(notes) != (elsewhere and bool(live)) and not (gone and elsewhere):
            wrong.append(f"{run} was noted as {notes}")
        for words in live[:1]:
            bodies = [body for (body,) in world.stored.entries("body", kind="user") if words.split("\n")[0] in body]
            if len(bodies) != notes.count(("noted",)):
                wrong.append(f"{run} was told as {bodies}, noted as {notes}")
    return wrong


def _reminders(world: World, runs: list[Run]) -> list[str]:
    """What is due once is said once, or its failure is told, or a person has stopped it while it ran."""
    wrong = []
    for job in (job for job in world.jobs.values() if isinstance(job.schedule, At) and job.job_id not in world.over):
        of_job = [run for run in runs if run.job_id == job.job_id]
        became = Counter(run.outcome for run in of_job)
        errors = [run for run in of_job if run.outcome == "failed"]
        told = bool(errors) and world.stored.deliveries("state", source=f"turn:{errors[0].turn_id}:error")
        begun = any(run.outcome == "stopped" and world.stored.entries(turn_id=run.turn_id) for run in of_job)
        if became["said"] > 1 or became["quiet"] or bool(told) != bool(errors):
            wrong.append(f"the reminder {job.job_id} became {became}, told was {told}")
        if not (became["said"] or begun or became["failed"] > TRIES):
            wrong.append(f"the reminder {job.job_id} is lost: {of_job}")
        if bool(world.stored.jobs(job_id=job.job_id)) != (not became["said"] and not begun):
            wrong.append(f"the reminder {job.job_id} is kept, or gone, after {became}")
        told_of = world.stored.deliveries("body", source={f"turn:{run.turn_id}:error" for run in errors})
        wrong += [f"told of {job.job_id} was {body!r}" for (body,) in told_of if job.job_id not in body]
        later = [run for run in errors[1:] if world.stored.deliveries(source=f"turn:{run.turn_id}:error")]
        wrong += [f"a later failure of {job.job_id} was told: {run}" for run in later]
    return wrong


def _lost_alerts(world: World, runs: list[Run]) -> list[str]:
    """What of a beat was refused is said again with the next one that runs."""
    wrong = []
    looked = max((run.at for run in runs if run.job_id == HEARTBEAT and run.cause[0] in "dl"), default=0)
    beats = {run.turn_id for run in runs if run.job_id == HEARTBEAT}
    lost = world.stored.deliveries("source", "cause", "settled_at", "state", state=set(_GONE), turn_id=beats)
    for source, cause, settled_at, state in lost:
        again = world.stored.deliveries("state", source="said-again:" + source.split(":")[1])
        if cause == Cause.SAID_ALREADY:
            continue
        if len(again) != (settled_at < looked):
            wrong.append(f"{source} is {state} since {settled_at}, the last beat was at {looked}, again: {again}")
    return wrong
