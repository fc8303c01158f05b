"""Parks turns that reach a budget with their work intact, and makes the command /budget that lets them go on.

A turn whose budget is of a day goes on by itself when the next day begins. An owner can let it go on before that: with
as much again, or with a configured model that costs less.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from agent.events import PARKED, AgentEnd, Notice
from bot.clock import Clock
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.outbox import Outbox
from bot.people.access import LOCAL
from bot.persistence.turns import Turn
from bot.persistence.usage import Waiting
from bot.runs import budget_words
from bot.runs.budgets import Reached
from bot.store.store import Store
from channels.outgoing import Button
from channels.sources import of_turn, sentence
from heartbeat.times import day_start

# How many digits of a turn are shown and typed.
_SHOWN = 6


class BudgetArguments(Arguments):
    """The arguments of /budget."""

    choice: Literal["more", "cheaper", "tomorrow"] | None = Field(
        default=None, description="as much again, a cheaper model, or wait; without it I say what waits."
    )
    turn: str = Field(default="", description="The digits that are shown, where several turns wait.")


async def park(turn: Turn, reached: Reached, store: Store, outbox: Outbox, *, to_owner: bool) -> AgentEnd:
    """Park a turn until its budget lets it go on, and tell its people and an owner. to_owner: only owners read there.

    Raises StaleRun or StoreUnavailable.
    """
    wait, names = reached.wait, ("budget", *reached.told_as)
    theirs = to_owner or turn.place.kind in LOCAL
    offered, choices = budget_words.choices(wait, reached.until), _buttons(Waiting(turn.turn_id, "", wait))
    said = f"{reached.why} {offered if theirs else budget_words.waits(reached.until)}"
    blocks = outbox.notice(of_turn(turn.turn_id, *names), said, turn.place.channel, choices if theirs else ())
    notice = None
    if not theirs:
        told = f"{budget_words.elsewhere(turn.place)} {reached.why} {offered}"
        notice = outbox.to_owner(sentence("turn", turn.turn_id, *names, "owner"), told, choices)
    event = Notice(run=turn.run, at=reached.at, step=turn.step, number=0, kind=PARKED, detail=said)
    with outbox.planning(turn.conv_id, turn.place, blocks) as where:
        deliveries, end = await store.budget_waits.park(turn.run, wait, where, blocks, notice, event, reached.limits)
        outbox.send(deliveries)
    if notice is not None:
        await outbox.serve_open()
    return end


def build(store: Store, clock: Clock, wake: Callable[[str], None]) -> Command:
    """Make the command. wake: starts what waits in a session."""

    async def run(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, BudgetArguments)
        found = await store.budget_waits.waiting()
        meant = [one for one in found if one.turn_id.endswith(arguments.turn)] if arguments.turn else found
        here = [one for one in meant if one.session_key == call.session_key]
        waiting = next(iter(here or meant), None)
        if waiting is None:
            return Say("No turn waits for a budget.")
        if arguments.choice is None or len(here or meant) > 1:
            return Say("\n".join(_line(one, clock) for one in found), mistake=arguments.choice is not None)
        woken: Sequence[str] = ()
        wait = waiting.wait
        said = f"It goes on at {clock.stamp(wait.until)}." if wait.until else "It waits: another day does not help."
        if arguments.choice == "more":
            today = day_start(clock.now(), clock.zone)
            woken = await store.budget_waits.allow_more(call.seq, waiting, today)
            said = f"As much again is allowed{' today' * (wait.scope != 'turn')}. It goes on."
        elif arguments.choice == "cheaper":
            if not wait.cheaper:
                return Say("No configured model fits into what is left of this budget.", mistake=True)
            woken = await store.budget_waits.choose(waiting, wait.cheaper)
            said = f"`{wait.cheaper}` answers there from now on. `/model default` there takes that back."
        if not woken and arguments.choice != "tomorrow":
            return Say("It waits no more.")
        for session_key in woken:
            wake(session_key)
        return Say(said)

    help_ = "What waits for a budget: more, cheaper or tomorrow."
    return Command(name="budget", help=help_, run=run, arguments=BudgetArguments, decides=True)


def _buttons(waiting: Waiting) -> tuple[Button, ...]:
    wait = waiting.wait
    choices = {"more": "As much again"}
    if wait.until is not None:
        choices["tomorrow"] = "Tomorrow"
    if wait.cheaper:
        choices["cheaper"] = f"Go on with {wait.cheaper}"
    return tuple(Button(label, f"/budget {word} {waiting.turn_id}") for word, label in choices.items())


def _line(waiting: Waiting, clock: Clock) -> str:
    """Return the line that shows a turn that waits, in Markdown."""
    wait = waiting.wait
    until = f", until {clock.stamp(wait.until)}" if wait.until is not None else ""
    digits = waiting.turn_id[-_SHOWN:]
    instead = f" or `/budget cheaper {digits}` (`{wait.cheaper}`)" if wait.cheaper else ""
    whose = budget_words.OF_WHOM[wait.scope]
    return f"- `{waiting.session_key}`: the budget of {whose}{until}; `/budget more {digits}`{instead}"
