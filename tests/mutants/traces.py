"""What spans say, and that nothing waits for them."""

from tests.mutants import Fault

_TRACES = "tests/bot/gateway/test_traces.py::test_"

FAULTS = (
    Fault(
        "traces/not-below-their-turn",
        "Traces._span",
        "set_span_in_context(below.span)",
        "None",
        (f"{_TRACES}a_turn_with_a_tool_is_a_tree_of_spans_without_words",),
    ),
    Fault(
        "traces/the-wanted-model-is-named",
        "_answered",
        "event.model or run.model",
        "run.model",
        (f"{_TRACES}what_fails_says_so_and_the_model_that_answered_is_named",),
    ),
    Fault(
        "traces/failures-are-fine",
        "_end",
        "if error:",
        "if False:",
        (f"{_TRACES}what_fails_says_so_and_the_model_that_answered_is_named",),
    ),
    Fault(
        "traces/the-last-are-lost",
        "Traces.close",
        "target=self._provider.shutdown",
        "target=self._provider.__hash__",
        (f"{_TRACES}a_turn_with_a_tool_is_a_tree_of_spans_without_words",),
    ),
    Fault(
        "traces/each-failure-is-told",
        "_Told.export",
        "!= self._fails",
        "!= 0",
        (f"{_TRACES}that_the_collector_fails_is_told_once_until_it_works_again",),
    ),
    Fault(
        "traces/runs-are-kept-for-ever",
        "Traces._begin",
        "len(self._runs) >= _RUNS",
        "False",
        (f"{_TRACES}runs_without_an_end_are_forgotten_at_last",),
    ),
    Fault(
        "traces/always-imported",
        "bot/service.py",
        "if TYPE_CHECKING:  # they import",
        "if True:  # they import",
        (f"{_TRACES}nothing_of_it_is_imported_where_it_is_off",),
    ),
)
