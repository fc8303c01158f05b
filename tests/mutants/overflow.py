"""Faults in telling a request that is too long from other failures."""

from tests.mutants import Fault

_WORDS = "tests/agent/models/test_overflow_words.py::test_"

FAULTS = (
    Fault(
        "overflow/gemini-is-not-known",
        "agent/models/failures.py",
        "(input|prompt) token count .{0,40}(exceeds|only supports)|",
        "",
        (f"{_WORDS}every_vendors_words_are_overflow",),
    ),
    Fault(
        "overflow/tokens-per-minute-are-overflow",
        "_kind",
        "    if status == 429 or codes & _RATE_CODES:\n        return ErrorKind.RATE_LIMIT\n",
        "",
        (f"{_WORDS}what_sounds_like_it_is_not",),
    ),
    Fault(
        "overflow/output-limits-are-overflow",
        "agent/models/failures.py",
        "|maximum context|",
        "|maximum|",
        (f"{_WORDS}what_sounds_like_it_is_not",),
    ),
)
