"""Errors that the store raises.

StoreError
├── StoreUnavailable     it cannot read or write now (disk full, locked); the same call may work later
├── StateLocked          another process holds the state directory
├── StoreTooNew          the file was written by a later version
└── StaleRun             a write named an epoch that is not the turn's current one
"""

from agent.errors import AgentError


class StoreError(AgentError):
    """Root of the store's errors. A run or a tool call that meets one ends at once."""


class StoreUnavailable(StoreError):
    """Nothing was read or written; the same call may work later."""


class StateLocked(StoreError):
    """Another process holds the state directory. The text names it and says what to do."""


class StoreTooNew(StoreError):
    """The file's schema is newer than this program."""


class StaleRun(StoreError):
    """The run was stopped, or another worker has its turn: it must end and send nothing."""
