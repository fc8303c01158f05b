"""Memory: what is found, where, and how it stands beside a message."""

from tests.mutants import Fault

_RECALL = "tests/bot/memory/test_recall.py::"
_INDEX = "tests/bot/memory/test_index.py::"

FAULTS = (
    Fault(
        "memory/an-edit-of-the-same-size-is-missed",
        "bot/memory/index.py",
        '{found.st_ctime_ns} {found.st_size} {found.st_ino}" if settled else ""',
        '{found.st_size} {found.st_ino}"',
        (f"{_INDEX}test_what_is_written_changed_and_deleted_is_known_at_once",),
    ),
    Fault(
        "memory/a-damaged-index-stays",
        "Index._do",
        'Path(f"{self._path}{suffix}").unlink(missing_ok=True)',
        "pass",
        (f"{_INDEX}test_a_damaged_index_is_made_anew",),
    ),
    Fault(
        "memory/recall-bears-nothing",
        "Context.newest_first",
        "if self.recalled is not None:",
        "if False:",
        (f"{_RECALL}test_what_is_recalled_bears_where_it_came_from",),
    ),
    Fault(
        "memory/recall-stays-for-the-next-turn",
        "Memories.recall",
        "context.recall(None, None)",
        "return",
        (f"{_RECALL}test_it_rides_beside_the_newest_message_in_every_step_and_is_not_stored",),
    ),
    Fault(
        "memory/pending-can-be-read",
        "MemoryGetTool.run",
        "if not is_readable(",
        "if False and is_readable(",
        (f"{_RECALL}test_a_room_sees_its_own_memory_alone",),
    ),
)
