"""Skills as people and programs are shown them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SkillView:
    """A skill as people are shown it."""

    name: str
    description: str
    # Why the model is not told of it; empty: it is.
    why_not: str
