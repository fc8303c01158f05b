"""Values of the store about outages of models."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """A turn that is parked until a model works again, or more of a budget is allowed."""

    turn_id: str
    session_key: str
    # The model that it waits for, "provider/model"; None: it waits for a budget.
    model: str | None
    # When its message was accepted, in milliseconds.
    since: int
    # The channel that is told when the turn is given up.
    channel: str
    # Milliseconds that a sub-agent may take in all; None: as long as other turns may wait.
    most: int | None
