"""What providers send, what becomes of answers that end early, and what is said of failures."""

from tests.mutants import Fault

_ENDED_EARLY = "tests/agent/test_ended_early.py::test_"
_CLIENTS = "tests/wire/test_model_clients.py::test_"
_MODEL_ERRORS = "tests/agent/test_model_errors.py::test_"

FAULTS = (
    Fault(
        "models/cuts-counted-anew-after-a-restart",
        "agent/loop.py",
        "self._context.limit_cuts(spec.ref.turn_id) < LIMIT_CUTS",
        "self.answers < LIMIT_CUTS",
        (f"{_ENDED_EARLY}the_cuts_of_a_turn_are_counted_over_a_restart",),
    ),
    Fault(
        "models/half-a-call-executed",
        "agent/loop.py",
        'answer.stop_reason not in ("max_output", "refusal")',
        "True",
        (f"{_ENDED_EARLY}a_call_in_an_answer_at_the_limit_is_not_executed",),
    ),
    Fault(
        "models/broken-streams-count-as-cuts",
        "agent/context.py",
        'entry.kind == "assistant_cut" and entry.message.model != ""',
        'entry.kind == "assistant_cut"',
        (f"{_ENDED_EARLY}a_broken_stream_counts_as_no_cut_of_the_limit",),
    ),
    Fault(
        "models/a-cut-answer-ends-the-turn",
        "bot/store/turns.py",
        "if note is not None or steering:",
        "if note is None and steering:",
        (f"{_ENDED_EARLY}an_answer_at_the_limit_of_output_goes_on",),
    ),
    Fault(
        "models/an-early-end-is-not-said",
        "bot/runs/journal.py",
        "if step.note is None and ended.stop_reason in wording.ENDED_EARLY:",
        "if False:",
        (f"{_ENDED_EARLY}the_third_time_the_answer_ends_and_one_line_says_so",),
    ),
    Fault(
        "models/a-cut-answer-is-two-texts",
        "bot/store/reads.py",
        " or (step == last + 1 and last in cut)",
        "",
        (f"{_ENDED_EARLY}an_answer_at_the_limit_of_output_goes_on",),
    ),
    Fault(
        "models/openai-done-ends-half-a-call",
        "agent/models/openai_chat.py",
        "all(call.complete() for call in self._calls)",
        "True",
        ("tests/agent/models/test_openai_answer.py::test_done_without_a_finish_reason_does_not_end_half_a_call",),
    ),
    Fault(
        "models/openai-done-needs-a-finish-reason",
        "agent/models/openai_chat.py",
        "if not self._finish and not (self.ended and said):",
        "if not self._finish:",
        ("tests/agent/models/test_openai_answer.py::test_done_without_a_finish_reason_ends_what_is_whole",),
    ),
    Fault(
        "models/fields-of-any-type",
        "agent/models/fields.py",
        'return value if isinstance(value, str) else ""',
        'return value or ""',
        ("tests/agent/models/test_odd_streams.py::test_an_odd_value_in_each_field",),
    ),
    Fault(
        "models/byte-order-mark-kept",
        "agent/models/sse.py",
        '"utf-8-sig"',
        '"utf-8"',
        ("tests/agent/models/test_sse.py::test_a_byte_order_mark_at_the_start_is_no_part_of_a_field",),
    ),
    Fault(
        "models/anthropic-two-answers-in-one",
        "agent/models/anthropic.py",
        "if self._blocks:  #",
        "if False:  #",
        ("tests/agent/models/test_anthropic_answer.py::test_an_answer_that_begins_anew_is_a_broken_one",),
    ),
    Fault(
        "models/arguments-without-bound",
        "agent/models/bounds.py",
        "self.is_over = self.is_over or self._calls[call_id] > MOST_ARGUMENTS",
        "pass",
        (f"{_CLIENTS}an_answer_without_end_is_cut_and_what_was_said_stays",),
    ),
    Fault(
        "models/words-without-bound",
        "agent/models/bounds.py",
        "self.is_over = self.is_over or self._characters > MOST_CHARACTERS",
        "pass",
        (f"{_CLIENTS}an_answer_without_end_is_cut_and_what_was_said_stays", f"{_CLIENTS}calls_without_end_are_cut"),
    ),
    Fault(
        "models/bytes-without-bound",
        "agent/models/bounds.py",
        "or self._bytes > MOST_BYTES or self._event_bytes > MOST_EVENT_BYTES",
        "",
        (f"{_CLIENTS}bytes_that_say_nothing_are_bounded",),
    ),
    Fault(
        "models/bytes-of-all-events-are-one",
        "agent/models/sdk.py",
        "            measure.end_event()\n",
        "",
        (f"{_CLIENTS}many_events_may_be_longer_than_one",),
    ),
    Fault(
        "models/a-cut-answer-is-lost",
        "agent/models/sdk.py",
        "            reader.cut()\n",
        "            return\n",
        (f"{_CLIENTS}an_answer_without_end_is_cut_and_what_was_said_stays",),
    ),
    Fault(
        "models/a-cut-anthropic-answer-is-whole",
        "agent/models/anthropic.py",
        'True, "max_tokens"',
        'True, "end_turn"',
        (f"{_CLIENTS}an_answer_without_end_is_cut_and_what_was_said_stays",),
    ),
    Fault(
        "models/a-cut-openai-answer-is-whole",
        "agent/models/openai_chat.py",
        'True, "length"',
        'True, "stop"',
        (f"{_CLIENTS}an_answer_without_end_is_cut_and_what_was_said_stays",),
    ),
    Fault(
        "models/an-unknown-address-is-a-bad-request",
        "agent/models/failures.py",
        "if status == 404 or codes & _MODEL_CODES",
        "if codes & _MODEL_CODES",
        ("tests/agent/models/test_failures.py::test_kinds",),
    ),
    Fault(
        "models/the-cause-is-no-warning",
        "agent/runner.py",
        "write = log.warning if given_up else log.info",
        "write = log.info",
        (f"{_MODEL_ERRORS}the_cause_is_one_warning",),
    ),
    Fault(
        "models/every-retry-is-said",
        "agent/runner.py",
        "if what not in self._told else {}",
        "if True else {}",
        (f"{_MODEL_ERRORS}retries_are_said_in_plain_words_and_once",),
    ),
    Fault(
        "models/everybody-sees-the-cause",
        "bot/runs/journal.py",
        "turn.place.kind in _PRIVATE and all(map(dependencies.is_owner, turn.messages))",
        "True",
        (f"{_MODEL_ERRORS}an_owner_sees_the_cause_and_others_a_sentence_that_says_nothing_of_the_service",),
    ),
)
