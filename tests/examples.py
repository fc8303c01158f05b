"""How many examples a property is tried with."""

from hypothesis import settings


def fewer(count: int) -> settings:
    """Only so many in the suite, for a property whose examples are dear; `make soak` tries as many as of the others."""
    return settings(max_examples=count) if settings.get_current_profile_name() == "suite" else settings()
