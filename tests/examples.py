"""How many examples a property is tried with, and which.

The suite tries the same ones on every machine, so that a failure is the change's own; `make soak` draws others.
"""

import random

from hypothesis import settings


def fewer(count: int) -> settings:
    """Only so many in the suite, for a property whose examples are dear; `make soak` tries as many as of the others."""
    return settings(max_examples=count) if _in_suite() else settings()


def seed(name: str, below: int) -> int:
    """A number from 0 on: in the suite the same for a name, in `make soak` drawn."""
    return (random.Random(name) if _in_suite() else random.Random()).randrange(below)


def stride(count: int) -> int:
    """So many steps at once in the suite, one in `make soak`."""
    return count if _in_suite() else 1


def _in_suite() -> bool:
    return settings.get_current_profile_name() == "suite"
