"""What the store can answer instead of a result.

StoreError
├── StoreUnavailable     it cannot write now (disk full, locked); the same call may work later
├── StateLocked          another process holds the state directory
├── StoreTooNew          the file was written by a later version
└── StaleRun             a write named an epoch that is not the turn's own any more
"""


class StoreError(Exception):
    """Root of the store's errors."""


class StoreUnavailable(StoreError):
    """Nothing was written."""


class StateLocked(StoreError):
    """Another process holds the state directory; the text says which and what to do."""


class StoreTooNew(StoreError):
    """The file's schema is newer than this program."""


class StaleRun(StoreError):
    """The run was stopped, or its turn belongs to another worker: it must end without another word."""
