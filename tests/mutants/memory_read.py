"""Memory: what is found, where, and how it stands beside a message."""

from tests.mutants import Fault

_RECALL = "tests/bot/memory/test_recall.py::"
_PREFIX = "tests/wire/test_prefix.py::"
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
        "context.recall(None)",
        "return",
        (f"{_RECALL}test_it_rides_beside_the_newest_message_in_every_step_and_is_not_stored",),
    ),
    Fault(
        "memory/a-cache-mark-on-what-is-recalled",
        "agent/models/anthropic.py",
        "messages = _messages(lines, spec)",
        "messages = _messages(request.messages, spec)",
        (f"{_PREFIX}test_what_is_recalled_stands_behind_the_last_cache_mark",),
    ),
    Fault(
        "memory/recall-stands-between-the-lines",
        "Context.sent",
        "(*self.messages(), *((self.recalled.message,) if self.recalled else ()))",
        "(*self.messages()[:1], *((self.recalled.message,) if self.recalled else ()), *self.messages()[1:])",
        (f"{_RECALL}test_it_rides_beside_the_newest_message_in_every_step_and_is_not_stored",),
    ),
    Fault(
        "memory/a-program-begins-anew-after-recall",
        "agent/models/cli/conversation.py",
        "if one.mark is not Mark.RECALLED",
        "",
        ("tests/wire/test_cli_models.py::test_a_session_goes_on_though_what_was_recalled_is_not_sent_again",),
    ),
    Fault(
        "memory/pending-can-be-read",
        "MemoryGetTool.run",
        "if not is_readable(",
        "if False and is_readable(",
        (f"{_RECALL}test_a_room_sees_its_own_memory_alone",),
    ),
)
