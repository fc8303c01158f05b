"""Memory: what is found, where, and how it stands beside a message."""

from tests.mutants import Fault

_RECALL = "tests/bot/memory/test_embeddings.py::"
_PREFIX = "tests/wire/test_prefix.py::"
_MEANING = "tests/bot/memory/test_embeddings.py::"
_WATCH = "tests/bot/memory/test_index.py::"
_FOUND = "tests/bot/memory/test_retrieval.py::test_what_was_written_is_found_in_every_language"
_WAYS = "tests/bot/memory/test_retrieval.py::test_it_is_found_however_it_is_written"
_INDEX = "tests/bot/memory/test_index.py::"

FAULTS = (
    Fault(
        "memory/an-edit-of-the-same-size-is-missed",
        "bot/memory/index.py",
        "looks if abs(now - found.st_ctime_ns) > _UNSETTLED else None",
        "looks[2:]",
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
        "Context.messages",
        "return (*first, *self._messages, *last)",
        "return (*first, *self._messages[:1], *last, *self._messages[1:])",
        (f"{_RECALL}test_it_rides_beside_the_newest_message_in_every_step_and_is_not_stored",),
    ),
    Fault(
        "memory/recall-comes-behind-results-as-a-person",
        "with_recalled",
        "if isinstance(last, ToolResult):",
        "if False:",
        ("tests/agent/models/test_openai_request.py::test_what_is_recalled_stands_at_the_end_of_the_last_line",),
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
    Fault(
        "memory/meaning-does-not-count",
        "bot/memory/ranking.py",
        "+ like.get(key, 0.0)",
        "",
        (f"{_MEANING}test_what_is_meant_is_found_without_its_words",),
    ),
    Fault(
        "memory/meaning-counts-alone",
        "bot/memory/ranking.py",
        "(got / enough if enough else 0.0) + like.get(key, 0.0)",
        "like.get(key, 0.0) or (got / enough if enough else 0.0)",
        (f"{_MEANING}test_both_rankings_count",),
    ),
    Fault(
        "memory/a-slow-endpoint-takes-the-words-along",
        "bot/memory/embeddings.py",
        "async with asyncio.timeout(seconds):",
        "async with asyncio.timeout(None):",
        (f"{_MEANING}test_words_count_alone_while_it_does_not_answer[hangs]",),
    ),
    Fault(
        "memory/every-message-asks-an-endpoint-that-is-down",
        "Memories._ready",
        "< self._failed_at + _REST",
        "< 0",
        (f"{_MEANING}test_words_count_alone_while_it_does_not_answer[status]",),
    ),
    Fault(
        "memory/no-vectors-for-what-was-written-in-an-outage",
        "Memories._ready",
        "self._changed.set()",
        "pass",
        (f"{_MEANING}test_words_count_alone_while_it_does_not_answer[status]",),
    ),
    Fault(
        "memory/vectors-of-another-size-stay",
        "Nearness.__call__",
        "length(bits)<>?",
        "length(bits)<0+?*0",
        (f"{_MEANING}test_vectors_of_another_model_are_made_anew[size]",),
    ),
    Fault(
        "memory/changes-are-not-followed",
        "Memories._watch",
        "await self._fill(list(found))",
        "pass",
        (f"{_WATCH}test_edits_new_files_names_and_ends_are_followed",),
    ),
    Fault(
        "memory/a-folder-made-later-is-not-watched",
        "Memories._watch",
        "self._changed.set()",
        "pass",
        (f"{_WATCH}test_edits_new_files_names_and_ends_are_followed",),
    ),
    Fault(
        "memory/rare-words-count-as-much-as-frequent-ones",
        "weight",
        "return min(1.0, (rarity(count) / rarity(1)) ** 2)",
        "return 1 / rarity(1) * rarity(1) + 0 * rarity(count)",
        (_FOUND,),
    ),
    Fault(
        "memory/endings-matter",
        "bot/memory/terms.py",
        "yield word, _beginning(word)",
        "yield word, word",
        (_FOUND,),
    ),
    Fault(
        "memory/no-pairs-of-characters",
        "bot/memory/terms.py",
        "for pair in pairs(chunk) or [chunk]:",
        "for pair in [chunk]:",
        (_FOUND,),
    ),
    Fault(
        "memory/telephone-numbers-only-in-full",
        "_forms",
        "digits[-_LONG:]",
        "digits",
        (f"{_WAYS}[telephones]",),
    ),
    Fault(
        "memory/days-only-as-written",
        "bot/memory/numbers.py",
        "plain = written.sub(day, plain)",
        "pass",
        (f"{_WAYS}[days]",),
    ),
    Fault(
        "memory/names-only-as-a-whole",
        "bot/memory/terms.py",
        "for name in _PARTS.findall(plain)",
        "for name in ()",
        (f"{_WAYS}[names]",),
    ),
    Fault(
        "memory/numbers-only-as-written",
        "bot/memory/numbers.py",
        "found.extend(_forms(written[1]))",
        "found.append((written[1], written[1]))",
        (f"{_WAYS}[numbers]",),
    ),
    Fault(
        "memory/no-signs",
        "bot/memory/terms.py",
        'if unicodedata.category(one) == "So"',
        "if False",
        (f"{_WAYS}[signs]",),
    ),
    Fault(
        "memory/umlauts-only-as-written",
        "bot/memory/terms.py",
        'return _UMLAUT.sub("", text.casefold())',
        "return text.casefold()",
        (f"{_WAYS}[letters]",),
    ),
    Fault(
        "memory/short-words-keep-their-endings",
        "bot/memory/terms.py",
        "while len(begin) > _LEAST and begin[-1] in _ENDING_LETTERS:",
        "while False:",
        (f"{_WAYS}[endings]",),
    ),
    Fault(
        "memory/a-large-file-is-read-to-its-end",
        "bot/memory/index.py",
        "itertools.islice(steps, _AT_ONCE)",
        "steps",
        (f"{_INDEX}test_reading_a_large_file_ends_when_it_is_told_and_goes_on_later",),
    ),
    Fault(
        "memory/a-file-that-grows-is-read-anew",
        "bot/memory/index.py",
        "itertools.takewhile(bool, alike)",
        "()",
        (f"{_INDEX}test_of_a_file_that_has_grown_only_the_new_is_read",),
    ),
    Fault(
        "memory/half-of-a-file-counts-as-the-file",
        "bot/memory/index.py",
        'db.execute(done, ("", "", 0, file_id))',
        "pass",
        (f"{_INDEX}test_a_file_that_changes_while_it_is_half_read_is_made_whole",),
    ),
)
