"""Untrusted text never acts: which text is, where calls go, and who was asked."""

from tests.mutants import Fault

_TESTS = "tests/bot/runs/test_origins.py::test_"

FAULTS = (
    Fault(
        "origins/nobody-is-asked",
        "Pipeline._guarded",
        "return for_task(ask or",
        "return ask if ask is None else for_task(ask or",
        (f"{_TESTS}what_stands_in_a_file_plans_nothing_without_a_question",),
    ),
    Fault(
        "origins/answers-bear-nothing",
        "Loop._answer",
        "model=model.name, origins=origins)",
        "model=model.name)",
        (f"{_TESTS}the_label_stays_in_later_turns",),
    ),
    Fault(
        "origins/a-summary-washes-clean",
        "compose",
        "origins=merged(origins))",
        "origins=())",
        (f"{_TESTS}a_summary_bears_what_it_stands_for",),
    ),
    Fault(
        "origins/what-is-allowed-outlives-the-task",
        "grants_of",
        "task:{transcript_id}:",
        "task:",
        (f"{_TESTS}allowed_for_the_task_it_is_not_asked_again_until_new",),
    ),
    Fault(
        "origins/one-sink-for-all",
        "grants_of",
        ":{sink}:",
        ":",
        (f"{_TESTS}allowed_for_the_task_it_is_not_asked_again_until_new",),
    ),
    Fault(
        "origins/members-of-groups-are-trusted",
        "_origins",
        "origin.place.kind in SEVERAL and message.kind",
        "False and message.kind",
        (f"{_TESTS}words_of_others_in_a_group_act_for_no_owner",),
    ),
    Fault(
        "origins/owners-are-not",
        "questioned",
        'one.kind == "person" and (not',
        "False and (not",
        (f"{_TESTS}words_of_owners_in_a_group_are_no_reason",),
    ),
    Fault(
        "origins/memory-is-any-file",
        "sink_of",
        '"remember" if is_memory(path) or',
        '"room" if is_memory(path) or',
        (f"{_TESTS}what_later_prompts_read_is_asked_about_and_other_files_are_not",),
    ),
    Fault(
        "origins/beats-remember-what-others-say",
        "Pipeline._guarded",
        'if sink == "remember" and context.background:',
        "if False:",
        (f"{_TESTS}what_runs_by_itself_remembers_nothing_of_others",),
    ),
    Fault(
        "origins/what-is-passed-on-is-ones-own",
        "_origins",
        "message.forwarded)",
        "None)",
        (f"{_TESTS}what_is_passed_on_is_somebody_elses",),
    ),
    Fault(
        "origins/a-composed-address-is-followed",
        "WebFetchTool.sink",
        'else "network"',
        'else "look"',
        (f"{_TESTS}an_address_of_a_page_is_followed_and_one_that_the_model_made_is_asked_about",),
    ),
)
