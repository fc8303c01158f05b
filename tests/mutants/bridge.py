"""What people read of a model's stream, turns that end in silence, and changes that failed."""

from tests.mutants import Fault

_CASES = "tests/agent/test_bridge.py::test_what_people_read_of_an_answer"
_SLICED = "tests/agent/test_bridge.py::test_it_does_not_matter_how_the_stream_was_sliced"
_SILENCE = "tests/agent/test_silence.py::test_"

FAULTS = (
    Fault(
        "bridge/nothing-held",
        "agent/bridge.py",
        "if not whole and len(text) - at < _LONGEST and",
        "if False and",
        (_CASES, _SLICED),
    ),
    Fault(
        "bridge/tags-in-fences-taken", "agent/bridge.py", "if _LINE_START.search(self._tail):", "if False:", (_CASES,)
    ),
    Fault(
        "bridge/nested-closing-ends-reasoning",
        "agent/bridge.py",
        "self._mode is _THINKING and self._depth > 1:",
        "False:",
        (_CASES,),
    ),
    Fault(
        "bridge/answer-behind-a-named-tag-lost",
        "agent/bridge.py",
        "        while self._doubtful is not None:\n",
        "        while False:\n",
        (_CASES,),
    ),
    Fault(
        "bridge/prose-behind-a-tag-lost",
        "agent/bridge.py",
        "behind = tag and name in",
        "behind = False and name in",
        (_CASES,),
    ),
    Fault(
        "bridge/cut-reasoning-said",
        "agent/bridge.py",
        " and not _BEGINS.search(self._tail)",
        "",
        (_CASES,),
    ),
    Fault(
        "bridge/cut-reasoning-of-control-tokens-said",
        "agent/bridge.py",
        'and name != "fence" and token[1] not in "|｜"',
        'and name != "fence"',
        (_CASES,),
    ),
    Fault(
        "bridge/quoted-tags-taken",
        "agent/bridge.py",
        "_FENCE, _CODE, _QUOTED, _THINK",
        "_FENCE, _CODE, _THINK",
        (_CASES,),
    ),
    Fault(
        "bridge/tags-in-quotations-taken",
        "agent/bridge.py",
        "(tag and _IN_QUOTATION.search(self._tail))",
        "False",
        (_CASES,),
    ),
    Fault(
        "bridge/a-call-without-an-end-said",
        "agent/bridge.py",
        'if tag.startswith("[TOOL") and _IS_CALL.search(rest):',
        "if False:",
        (_CASES,),
    ),
    Fault(
        "bridge/a-tag-that-was-said-hides-the-rest",
        "agent/bridge.py",
        '{"think", "calling"}  # kinds',
        "set()  # kinds",
        ("tests/agent/test_bridge.py::test_a_cut_answer_goes_on_in_the_fence_that_was_open",),
    ),
    Fault(
        "bridge/plain-words-not-looked-at",
        "agent/bridge.py",
        " and _MORE.search(delta) is None:",
        ":",
        (_CASES,),
    ),
    Fault(
        "bridge/cut-fence-forgotten",
        "agent/bridge.py",
        "        if after:\n",
        "        if False:\n",
        ("tests/agent/test_bridge.py::test_a_cut_answer_goes_on_in_the_fence_that_was_open",),
    ),
    Fault(
        "bridge/held-without-bound",
        "agent/bridge.py",
        "_LONGEST = 1000",
        "_LONGEST = 1_000_000",
        ("tests/agent/test_bridge.py::test_what_is_held_is_bounded_so_that_the_work_is_linear",),
    ),
    Fault(
        "bridge/half-pairs-told",
        "agent/bridge.py",
        'half = text[-1] if not whole and text and "\\ud800" <= text[-1] <= "\\udbff" else ""',
        'half = ""',
        ("tests/agent/test_bridge.py::test_a_text_in_pieces_of_utf16_units_is_joined_again",),
    ),
    Fault(
        "bridge/transcript-keeps-the-tags",
        "agent/loop.py",
        "in bridged(cleaned(answer.message.parts), after):",
        "in cleaned(answer.message.parts):",
        ("tests/wire/test_reasoning_in_text.py",),
    ),
    Fault(
        "bridge/end-not-told",
        "agent/loop.py",
        'return [(*piece, "") for piece in bridge.end()]',
        "return ()",
        ("tests/wire/test_reasoning_in_text.py",),
    ),
    Fault(
        "silence/another-answer",
        "agent/calls/batch.py",
        "silent = done and context.silenced([call.result for call in results])",
        "silent = False",
        (f"{_SILENCE}silence_ends_the_turn_without_another_answer",),
    ),
    Fault(
        "silence/unsaid-words-said",
        "bot/runs/journal.py",
        "blocks = self._replies.end(silent=silent)",
        "blocks = self._replies.end()",
        (f"{_SILENCE}silence_ends_the_turn_without_another_answer",),
    ),
    Fault(
        "silence/steering-lost",
        "bot/store/turns.py",
        "if silent and not steering:",
        "if silent:",
        (f"{_SILENCE}what_came_meanwhile_is_answered",),
    ),
    Fault(
        "silence/cut-call-asks-again",
        "agent/context.py",
        "(not one.is_error or one.mark is Mark.CUT)",
        "not one.is_error",
        ("tests/agent/test_context.py::test_silence_that_a_crash_cut_off_is_silence",),
    ),
    Fault(
        "failed/mended-told",
        "agent/context.py",
        "                failed.pop(aim, None)\n",
        "",
        (f"{_SILENCE}a_change_that_failed_for_good_is_told",),
    ),
    Fault(
        "failed/denied-told",
        "agent/context.py",
        " or result.call_id in denied:",
        ":",
        (f"{_SILENCE}what_people_denied_is_no_failure",),
    ),
)
