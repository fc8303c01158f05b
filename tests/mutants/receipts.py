"""The line of what was done, and answers that claim what was not."""

from tests.mutants import Fault

_RECEIPTS = "tests/bot/runs/test_receipts.py"
_CLAIMS = "tests/agent/calls/test_claims.py"

FAULTS = (
    Fault(
        "receipts/failed-calls-named",
        "Context.acts",
        "if not one.is_error and one.call_id in found",
        "if one.call_id in found",
        (f"{_RECEIPTS}::test_what_failed_is_no_act",),
    ),
    Fault(
        "receipts/in-groups",
        "Receipts._shown",
        "return kind in (ChatKind.DIRECT, ChatKind.CONSOLE)",
        "return True",
        (f"{_RECEIPTS}::test_groups_have_none_unless_it_is_written[auto-False]",),
    ),
    Fault(
        "receipts/asked-again-and-again",
        "Loop._claims",
        "if context.marked(spec.ref.turn_id, Mark.CLAIM):",
        "if False:",
        (f"{_CLAIMS}::test_the_model_is_asked_once_only",),
    ),
    Fault(
        "receipts/lie-shown",
        "RunJournal._last_blocks",
        "if claims and not",
        "if False and not",
        (f"{_CLAIMS}::test_a_claim_is_taken_back_before_it_is_shown",),
    ),
)
