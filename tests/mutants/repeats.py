"""What counts as said already, and what only looks so."""

from tests.mutants import Fault

_REPEATS = "tests/bot/replies/test_replies.py::test_"
_SAME = "return _plain(text) == _plain(earlier) != "
_TASK = "tests/bot/background/test_beats_shown.py::test_an_alert_is_compared_with_the_last_one_on_its_task"

FAULTS = (
    Fault(
        "repeats/nearly-the-same",
        "is_repeat",
        _SAME,
        "from difflib import SequenceMatcher\n    words = _plain(text).split()\n"
        "    alike = SequenceMatcher(None, words, _plain(earlier).split(), autojunk=False).ratio() >= 0.92\n"
        "    return alike or _plain(text) == _plain(earlier) != ",
        (f"{_REPEATS}a_sentence_that_differs_in_a_word_that_matters_is_shown",),
    ),
    Fault(
        "repeats/one-contains-the-other",
        "is_repeat",
        _SAME,
        "return _plain(text) in _plain(earlier) != ",
        (f"{_REPEATS}repeats",),
    ),
    Fault(
        "repeats/signs-and-emoji-count-as-nothing",
        "is_repeat",
        _SAME,
        "return _letters(text) == _letters(earlier) != ",
        (
            f"{_REPEATS}a_sentence_that_differs_in_a_word_that_matters_is_shown",
            f"{_REPEATS}an_alert_that_differs_in_a_word_that_matters_is_shown",
        ),
    ),
    Fault(
        "repeats/capitals-count-as-nothing",
        "is_repeat",
        _SAME,
        "return _plain(text).lower() == _plain(earlier).lower() != ",
        (f"{_REPEATS}a_sentence_that_differs_in_a_word_that_matters_is_shown", f"{_REPEATS}repeats"),
    ),
    Fault(
        "repeats/any-length-may-become-it",
        "may_become",
        "len(words) <= len(said) + _LONGEST and ",
        "",
        (f"{_REPEATS}a_beginning_may_become_what_was_said",),
    ),
    Fault(
        "repeats/no-room-for-a-closing",
        "may_become",
        "len(words) <= len(said) + _LONGEST",
        "len(words) <= len(said)",
        (f"{_REPEATS}a_beginning_may_become_what_was_said",),
    ),
    Fault(
        "repeats/no-room-for-a-greeting",
        "may_become",
        " or len(beginning) < _LONGEST",
        "",
        (f"{_REPEATS}repeats",),
    ),
    Fault(
        "repeats/marks-within-code",
        "_unmarked",
        'found["code"] or _unmarked(found["words"] or "")',
        '_unmarked(found["code"] or found["words"] or "")',
        (f"{_REPEATS}repeats",),
    ),
    Fault("repeats/alerts-on-other-tasks", "Schedules.last_alert", " AND {_SHARES} ORDER", " ORDER", (_TASK,)),
    Fault(
        "repeats/a-beat-without-tasks-shows-nothing",
        "bot/store/schedules.py",
        "('[]' IN (mine.tasks, firing.tasks)\"\n    \" OR EXISTS",
        '("\n    " EXISTS',
        (_TASK,),
    ),
    Fault(
        "repeats/the-first-alert-of-the-day",
        "Schedules.last_alert",
        "ORDER BY max(delivery_id) DESC LIMIT 1",
        "ORDER BY max(delivery_id) LIMIT 1",
        (_TASK,),
    ),
)
