"""What model calls may take, and how that is counted."""

from tests.mutants import Fault

_BUDGETS = "tests/bot/runs/test_budgets.py::test_"

_WAITS = "tests/bot/runs/test_budget_waits.py::test_"

FAULTS = (
    Fault(
        "budgets/what-waits-is-refused",
        "Budgets.reserve",
        "spent, need, with_others=False):\n                break",
        "spent, need, with_others=True):\n                break",
        (f"{_BUDGETS}a_call_waits_for_those_that_have_reserved_what_they_will_not_take",),
    ),
    Fault(
        "budgets/a-cut-call-is-free",
        "close_cut_answer",
        "if found or heard is not None:",
        "if False:",
        (f"{_BUDGETS}a_stopped_call_counts_once",),
    ),
    Fault(
        "budgets/a-refused-call-is-charged",
        "RunJournal.fail",
        "self._heard or error_kind in _BILLED",
        "True",
        (f"{_BUDGETS}a_refused_call_has_used_nothing_and_a_broken_one_what_is_known_of_it",),
    ),
    Fault(
        "budgets/money-without-a-price",
        "unpriced",
        "if limit.money is not None]",
        "if False]",
        ("tests/bot/config/test_choose_model.py::TestBudget::test_money_needs_the_price_of_each_model_that_answers",),
    ),
    Fault(
        "budgets/no-day-ends",
        "Budgets.reserve",
        "root_of(turn.session_key), today)",
        "root_of(turn.session_key), 0)",
        (f"{_BUDGETS}the_day_of_this_machine_begins_at_midnight_also_over_a_restart",),
    ),
    Fault(
        "budgets/what-is-settled-meanwhile-is-missed",
        "Budgets.reserve",
        "if settled.is_set():",
        "if False:",
        (f"{_BUDGETS}what_is_settled_while_the_rows_are_read_is_not_missed",),
    ),
    Fault(
        "budgets/no-owner-is-told",
        "RunJournal.fail",
        "if error_kind == BUDGET and not self._quiet and not (told",
        "if False and not (told",
        (f"{_BUDGETS}an_owner_is_told_of_beats_that_have_reached_their_budget",),
    ),
    Fault(
        "budgets/others-see-everything",
        "UsageReport._show",
        '"" if alone else call.session_key',
        '""',
        (f"{_BUDGETS}owners_see_everything_and_others_their_own_session",),
    ),
    Fault(
        "budgets/an-empty-answer-is-free",
        "RunJournal.cut",
        "if self._heard or kind in _BILLED else None",
        "if self._heard else None",
        (f"{_BUDGETS}an_empty_answer_that_is_asked_for_again_counts_as_a_call",),
    ),
    Fault(
        "budgets/two-presses-allow-twice",
        "BudgetWaits.allow_more",
        "FROM turn WHERE {_OVER} AND turn_id=?",
        "FROM turn WHERE turn_id=?",
        (f"{_WAITS}whoever_allows_it_a_moment_later_allows_nothing",),
    ),
    Fault(
        "budgets/what-is-allowed-is-forgotten",
        "Budgets._over",
        "spent.raised.get(scope, 0) + 1",
        "1",
        (f"{_BUDGETS}a_turn_that_reaches_its_budget_keeps_what_it_has_done",),
    ),
    Fault(
        "budgets/no-day-lets-it-go-on",
        "BudgetWaits.resume",
        "over_until <= ?",
        "over_until < ? - over_until",
        (f"{_WAITS}a_new_day_lets_them_go_on_by_themselves",),
    ),
    Fault(
        "budgets/a-larger-one-is-not-seen",
        "BudgetWaits.begin",
        "db.execute(_QUEUE)",
        "pass",
        (f"{_WAITS}a_larger_budget_lets_them_go_on_at_the_next_start",),
    ),
    Fault(
        "budgets/others-may-allow-more",
        "bot/runs/budget_waits.py",
        "arguments=BudgetArguments)",
        'arguments=BudgetArguments, guests="direct")',
        (f"{_WAITS}who_is_no_owner_cannot_allow_more",),
    ),
    Fault(
        "budgets/the-cheaper-model-is-not-chosen",
        "BudgetWaits.choose",
        "'$.model'",
        "'$.other'",
        (f"{_WAITS}a_cheaper_model_goes_on",),
    ),
    Fault(
        "budgets/it-waits-for-ever",
        "bot/store/outages.py",
        "(misses IS NOT NULL OR over IS NOT NULL AND over_until IS NULL)",
        "misses IS NOT NULL",
        (f"{_WAITS}one_that_no_day_helps_is_given_up_at_last",),
    ),
    Fault(
        "budgets/programs-wait",
        "RunJournal.park_for_budget",
        " or self.turn.place.kind is ChatKind.API",
        "",
        (f"{_WAITS}a_program_is_told_at_once",),
    ),
)
