"""Memories that wait, are kept and are taken back, and scopes."""

from tests.mutants import Fault

_WRITE = "tests/bot/memory/test_memory_write.py::"
_SCOPES = "tests/attacks/test_scopes.py::"

FAULTS = (
    Fault(
        "memory-write/untrusted-text-is-remembered",
        "MemoryWriteTool.run",
        "context.background or bool(doubts) or",
        "context.background or",
        (f"{_WRITE}test_what_is_written_beside_untrusted_text_waits_until_it_is_kept",),
    ),
    Fault(
        "memory-write/a-beat-remembers",
        "MemoryWriteTool.run",
        "context.background or bool(doubts) or",
        "bool(doubts) or",
        (f"{_WRITE}test_a_beat_only_proposes",),
    ),
    Fault(
        "memory-write/a-group-remembers",
        "MemoryWriteTool.run",
        'or room.startswith("groups/")',
        "",
        (f"{_WRITE}test_what_a_group_remembers_waits_for_an_owner",),
    ),
    Fault(
        "memory-write/what-is-kept-loses-its-sources",
        "bot/memory/filing.py",
        "after, bears, keeps=not whole",
        "after, (), keeps=not whole",
        (f"{_WRITE}test_a_kept_memory_bears_its_sources_when_it_is_read_again",),
    ),
    Fault(
        "memory-write/the-label-outlives-what-is-taken-back",
        "bot/memory/filing.py",
        "keeps=not whole",
        "keeps=True",
        (f"{_WRITE}test_a_file_of_memories_bears_no_more_what_was_taken_back",),
    ),
    Fault(
        "memory-write/filed-twice",
        "_changed",
        'one.state == "keeping" and not _in_file(one.entry)(text)',
        'one.state == "keeping"',
        (f"{_WRITE}test_a_start_brings_files_up_to_date_that_a_crash_left_behind",),
    ),
    Fault(
        "memory-write/others-decide",
        "bot/memory/command.py",
        "of_room(None if call.by_owner else room)",
        "of_room(None)",
        (f"{_WRITE}test_what_a_group_remembers_waits_for_an_owner",),
    ),
    Fault(
        "memory-write/shown-in-groups",
        "bot/memory/command.py",
        "if call.message.origin.place.kind in SEVERAL:",
        "if False:",
        (f"{_WRITE}test_what_a_group_remembers_waits_for_an_owner",),
    ),
    Fault(
        "memory-write/a-digest-at-every-look",
        "Memories.digest",
        "max(last, waiting[0].written_at) + every > now",
        "False",
        (f"{_WRITE}test_a_digest_comes_once_a_day_while_something_waits",),
    ),
    Fault(
        "memory-write/forgotten-but-kept",
        "bot/store/forgetting.py",
        "        take_of_person(db, *who, own, whom.rooms)\n",
        "",
        (f"{_WRITE}test_what_was_made_from_somebody_goes_with_them",),
    ),
    Fault(
        "memory-write/commands-see-rooms",
        "Confinement.launch",
        "(*self.hidden, *_rooms_in(room))",
        "self.hidden",
        (f"{_SCOPES}test_no_way_leads_into_another_scope[1]",),
    ),
)
