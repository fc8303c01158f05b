"""Faults in what a turn does when its model fails: keys, other models, outages, and choices of models and levels."""

from tests.mutants import Fault

_OUTAGES = "tests/bot/runs/test_outages.py::test_"
_MODELS = "tests/bot/runs/test_model_commands.py::test_"

FAULTS = (
    Fault(
        "outages/probes-cost-nothing",
        "OutageWatch._probe",
        "if usage != Usage():",
        "if False:",
        ("tests/bot/runs/test_outages.py::test_what_a_probe_uses_is_counted_for_the_bot_alone",),
    ),
    Fault(
        "outages/probes-are-left-before-they-say-their-usage",
        "Fleet.probe",
        "await self.works(client)\n        except",
        "break\n        except",
        ("tests/bot/runs/test_outages.py::test_what_a_probe_uses_is_counted_for_the_bot_alone",),
    ),
    Fault(
        "outages/no-key-rests",
        "Fleet.rest",
        "self.rests[of] = rest",
        "pass",
        (f"{_OUTAGES}the_next_key_answers_when_one_is_limited",),
    ),
    Fault(
        "outages/rests-end-with-the-process",
        "OutageWatch.load",
        "self._fleet.load(await self._store.outages.rests())",
        "self._fleet.load(())",
        (f"{_OUTAGES}a_key_that_rests_rests_over_a_restart",),
    ),
    Fault(
        "outages/any-model-stands-in",
        "Route.next_model",
        "on is not None and error.kind in on",
        "on is not None",
        (f"{_OUTAGES}a_model_stands_in_only_for_the_failures_it_is_for",),
    ),
    Fault(
        "outages/told-for-every-turn",
        "RunJournal.answers",
        "if away != self._away:",
        "if away:",
        (f"{_OUTAGES}another_model_stands_in_and_leaves_again",),
    ),
    Fault(
        "outages/the-next-one-is-silent",
        "Outages.park",
        "ended_at >= outage_told_at",
        "false",
        (f"{_OUTAGES}the_next_outage_is_told_as_well",),
    ),
    Fault(
        "outages/parked-for-ever",
        "Outages.resume",
        "UPDATE turn SET state='queued', misses=NULL WHERE",
        "UPDATE turn SET state='queued', misses=NULL WHERE false AND",
        (f"{_OUTAGES}an_outage_is_a_delay",),
    ),
    Fault(
        "outages/claimed-while-parked",
        "still_waits",
        "misses is not None or ",
        "",
        (f"{_OUTAGES}an_outage_is_a_delay",),
    ),
    Fault(
        "outages/never-given-up",
        "OutageWatch._look",
        "now - turn.since > min(",
        "0 > min(",
        (f"{_OUTAGES}what_waits_too_long_is_given_up",),
    ),
    Fault(
        "outages/owners-are-not-told",
        "OutageWatch.park",
        "if outage.kind in KEY_FAILURES and not to_owner:",
        "if False:",
        (f"{_OUTAGES}the_owner_is_told_of_a_key_that_is_refused",),
    ),
    Fault(
        "outages/probed-too-early",
        "OutageWatch._probe",
        "rest.asked > self._clock.now()",
        "False",
        (f"{_OUTAGES}a_probe_waits_for_as_long_as_the_provider_asked",),
    ),
    Fault(
        "outages/the-choice-is-forgotten",
        "Specs.answering",
        " or settings.model\n",
        "\n",
        (f"{_MODELS}a_session_chooses_its_model",),
    ),
    Fault(
        "outages/anybody-chooses-for-a-group",
        "bot/runs/model_commands.py",
        'arguments=ModelArguments, guests="direct"',
        'arguments=ModelArguments, guests="everywhere"',
        (f"{_MODELS}in_a_group_only_an_owner_chooses",),
    ),
    Fault(
        "outages/a-level-for-one-message-stays",
        "Specs.answering",
        '(messages[-1].thinking if messages else "") or',
        "",
        (f"{_MODELS}levels_of_thinking",),
    ),
    Fault(
        "outages/a-refused-level-is-asked-for-again",
        "Outages._remember",
        "UPDATE session SET settings=json_set(",
        "UPDATE session SET settings=json_remove(",
        (f"{_MODELS}a_level_that_is_refused_is_lowered_and_told_once",),
    ),
    Fault(
        "outages/back-before-it-answers",
        "Loop._publish",
        "if not published:",
        "if False:",
        (f"{_OUTAGES}that_a_model_is_back_is_told_only_once_it_has_answered",),
    ),
    Fault(
        "outages/the-last-failure-counts",
        "Runner._after",
        "client, error = self._mildest()",
        "client = self._route.model",
        (f"{_OUTAGES}a_key_that_is_wrong_hides_no_other_that_is_only_limited",),
    ),
    Fault(
        "outages/the-call-chooses-nothing",
        "Specs.answering",
        '(messages[-1].model if messages else "")',
        '""',
        (f"{_MODELS}one_call_of_the_http_interface_chooses_for_itself",),
    ),
)
