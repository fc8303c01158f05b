"""What people and owners are told about budgets."""

from bot.persistence.usage import BudgetWait
from channels.message import Place

# What people are told when a turn has waited for a budget for too long.
GIVEN_UP = "The budget has not let me go on for so long that I have given up on your message. Write again to go on."
# Of whom a budget is, by its key.
OF_WHOM = {"turn": "a turn", "session": "this conversation", "user": "a person", "job": "a job", "bot": "this bot"}


def reached(scope: str, used: str, allowed: str, need: str) -> str:
    """Why a model call is not made. need: what it could take at most."""
    told = f"The budget of {OF_WHOM[scope]} is reached: {used} of {allowed}{' a day' * (scope != 'turn')} are used"
    return f"{told}, and the next step could take {need}. What I have done so far is kept."


def ends(scope: str, until: str) -> str:
    """What follows for whoever asked where a turn ends by a budget. until: when it is enough again; empty: never."""
    on = f"It goes on at {until}: write again then." if until else "Write again to go on from there."
    return f"{on} {_set(scope)}"


def waits(until: str) -> str:
    """What follows for people whose turn waits for a budget. until: as above."""
    on = f"I go on by myself at {until}, or when" if until else "I go on when"
    return f"{on} an owner allows more. /stop ends it."


def choices(wait: BudgetWait, until: str) -> str:
    """What an owner can choose for a turn that waits for a budget. until: `wait.until` in words."""
    instead = f", `/budget cheaper` goes on with `{wait.cheaper}`" if wait.cheaper else ""
    on = f" At {until} it goes on by itself." if until else ""
    return f"`/budget more` allows as much again{instead}, /stop there ends it.{on} {_set(wait.scope)}"


def _set(scope: str) -> str:
    return f"`budget.{scope}` in the configuration sets it."


def elsewhere(place: Place) -> str:
    """How a notice to an owner begins that is about a turn of others."""
    return f"On {place.channel} (chat {place.chat}):"


def without_price(model: str) -> str:
    """Why a model may not be asked under a budget of money."""
    return f"The budget of money cannot be kept, because the price of {model} is not known; another model can answer."
