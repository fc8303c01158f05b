"""What the store can answer instead of a result.

StoreError
├── StoreUnavailable     it cannot read or write now (disk full, locked); the same call may work later
├── StateLocked          another process holds the state directory
├── StoreTooNew          the file was written by a later version
└── StaleRun             a write named an epoch that is not the turn's own any more
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent.errors import AgentError

T = TypeVar("T")


class StoreError(AgentError):
    """Root of the store's errors. Whatever a run does when it meets one, a call of a tool too, ends at once."""


class StoreUnavailable(StoreError):
    """Nothing was read or written."""


async def once_available(
    attempt: Callable[[], Awaitable[T]], wait: Callable[[StoreUnavailable], Awaitable[object]]
) -> T:
    """Call `attempt` until the store can read and write for it; `wait` each time that it could not."""
    while True:
        try:
            return await attempt()
        except StoreUnavailable as error:
            await wait(error)


class StateLocked(StoreError):
    """Another process holds the state directory; the text says which and what to do."""


class StoreTooNew(StoreError):
    """The file's schema is newer than this program."""


class StaleRun(StoreError):
    """The run was stopped, or its turn belongs to another worker: it must end without another word."""
