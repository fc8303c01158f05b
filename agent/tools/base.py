"""What a tool is: a pydantic model for its parameters (schema, validation and documentation at once) and a call."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from agent.message import ToolOutput


class Parameters(BaseModel):
    """Base of all tool parameters: unknown names are refused, so that the model learns of its mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Which call this is, and what a tool may tell while it runs.

    update: reports progress; events only, nothing is stored. started: to be awaited by a tool that starts a process,
    with its pid and the kernel's start time of it, BEFORE the process may do anything: it is stored, so that a
    leftover can be ended after a crash.
    """

    turn_id: str
    session_key: str
    call_id: str
    update: Callable[[str], None]
    started: Callable[[int, str], Awaitable[None]]


class Tool(Generic[P]):
    """Base class of tools. `parallel_safe` says that calls of one step may run beside others that say so too.
    `trusted_only`: runs for callers whom nobody vouches for are made without it.

    An exception out of `run` becomes an error result that the model can read; cancellation ends the work at once and
    leaves nothing running.
    """

    name: str
    description: str
    parameters: type[P]
    parallel_safe: bool = False
    trusted_only: bool = False

    async def run(self, parameters: P, context: CallContext) -> ToolOutput:
        """Do it; returns what the model reads."""
        raise NotImplementedError
