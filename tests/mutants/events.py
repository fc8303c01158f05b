"""Kept events by their positions, and the notification of the subscriber."""

from tests.mutants import Fault

_BUS = "tests/bot/test_bus.py::test_"
_KEEPING = "tests/bot/store/test_keeping.py::test_"
_JOINING = "tests/bot/gateway/test_events.py::test_"
_PUBLISHED = f"{_KEEPING}events_are_published_before_their_writer_is_answered"

FAULTS = (
    Fault(
        "events/never-published",
        "Writer._commit",
        "            self._subscriber(kept)\n",
        "            pass\n",
        (_PUBLISHED, "tests/bot/gateway/test_events.py::test_a_run_as_it_happens"),
    ),
    Fault(
        "events/published-before-the-commit",
        "Writer._run_batch",
        "            kept = rows.persisted_after(connection, self._published)\n",
        "            self._subscriber(kept := rows.persisted_after(connection, self._published))\n",
        (_PUBLISHED,),
    ),
    Fault(
        "events/published-twice",
        "Writer._commit",
        "            self._published = kept[-1].seq\n",
        "",
        (
            _PUBLISHED,
            "tests/bot/persistence/test_turns.py::test_positions_rise_and_are_published_before_the_writer_is_answered",
        ),
    ),
    Fault(
        "events/published-again-after-a-restart",
        "Writer._run_batch",
        "self._published = rows.newest_event(connection)",
        "self._published = 0",
        (_PUBLISHED,),
    ),
    Fault(
        "events/the-middle-of-an-answer-without-its-beginning",
        "Subscription.offer",
        " or run.run_id in self._lagging:",
        ":",
        (f"{_BUS}what_was_missed_once_is_told_again_with_the_next_answer",),
    ),
    Fault(
        "events/updates-without-bound",
        "Subscription.offer",
        "if len(self._queue) >= _UPDATES",
        "if len(self._queue) >= 100_000",
        (f"{_BUS}what_was_missed_once_is_told_again_with_the_next_answer",),
    ),
    Fault(
        "events/rings-without-bound",
        "Subscription.announce",
        "if self._queue and isinstance(self._queue[-1], range):",
        "if False:",
        (f"{_BUS}rings_become_one_while_nobody_looks",),
    ),
    Fault(
        "events/what-a-stopped-run-still-says",
        "EventBus.publish",
        "if event.run.run_id in self._ended:",
        "if False:",
        (f"{_BUS}what_a_run_says_after_its_end_is_told_to_nobody",),
    ),
    Fault(
        "events/a-position-that-was-never-given-is-waited-for",
        "EventStream._begin",
        "(last if last <= newest else 0)",
        "last",
        (f"{_JOINING}the_start_of_an_answer_comes_before_its_updates",),
    ),
    Fault(
        "events/answers-under-way-have-no-beginning",
        "EventStream._begin",
        "return self._kept(answers), range(",
        'return b"", range(',
        ("tests/bot/gateway/test_events.py::test_a_stream_begins_with_the_answers_that_are_being_written",),
    ),
    Fault(
        "events/an-answer-begins-untold",
        "Claims._take",
        "        if not asked:\n            rows.begin_answer(db, run, step + 1, now)\n",
        "",
        ("tests/bot/gateway/test_events.py::test_a_run_as_it_happens",),
    ),
    Fault(
        "events/a-reader-does-not-know-what-it-missed",
        "Loop._publish",
        "        published[kind, of] += len(delta)\n",
        "",
        ("tests/bot/gateway/test_events.py::test_a_run_as_it_happens",),
    ),
)
