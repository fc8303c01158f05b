"""The steps of a call, which tools there are for whom, and circles that a turn goes round in."""

from tests.mutants import Fault

_PIPELINE = "tests/agent/calls/test_pipeline.py::test_"
_PERMISSIONS = "tests/bot/runs/test_permissions.py::test_"
_REPAIR = "tests/agent/calls/test_repair.py::test_"
_GUARD = "tests/agent/calls/test_loop_guard.py::test_"
_POLICY = "tests/agent/tools/test_schema.py::test_"

FAULTS = (
    Fault(
        "pipeline/hooks-come-behind-validation",
        "Pipeline._prepare",
        "        parameters = parse_arguments(tool, ran.arguments)\n",
        "        parameters = parse_arguments(tool, repaired(call, self._spec.tools.by_name).arguments)\n",
        (f"{_PIPELINE}the_order_of_the_steps", f"{_PIPELINE}what_a_person_allows_is_what_hooks_have_made_of_it"),
    ),
    Fault(
        "pipeline/a-broken-hook-lets-calls-through",
        "_failed",
        'return f"a hook has failed ({hook.name}: {why})" if event.guards else None',
        "return None",
        (f"{_PIPELINE}a_call_is_refused_at_its_step",),
    ),
    Fault(
        "pipeline/senders-may-call-everything",
        "Pipeline._prepare",
        "if reason := self._spec.tools.refused.get(ran.name):",
        "if (reason := self._spec.tools.refused.get(ran.name)) and ran.name not in self._spec.tools.by_name:",
        (f"{_PERMISSIONS}the_tools_of_a_session_are_the_same_bytes_whoever_writes",),
    ),
    Fault(
        "pipeline/nobody-is-asked-what-the-configuration-wants-asked",
        "Pipeline._ask",
        "if not matches(tool.name, self._spec.rules.asked_for, tool.group) or",
        "if matches(tool.name, self._spec.rules.asked_for, tool.group) or",
        (f"{_PIPELINE}what_a_person_allows_is_what_hooks_have_made_of_it",),
    ),
    Fault(
        "pipeline/always-holds-in-every-conversation",
        "Pipeline._plain_ask",
        "json.dumps([tool.name, canonical, context.session_key])",
        "json.dumps([tool.name, canonical])",
        (f"{_PIPELINE}what_is_allowed_always_is_allowed_for_these_arguments_here",),
    ),
    Fault(
        "pipeline/asked-about-twice",
        "Pipeline._ask",
        "return replace(ask, grants=(*ask.grants, grant)) if ask.grants else ask",
        "return ask",
        (f"{_PIPELINE}a_tool_that_asks_itself_is_asked_about_once[always]",),
    ),
    Fault(
        "pipeline/secrets-in-results",
        "Pipeline._result",
        "text = self._spec.overflow.clean(well_formed(output.text))",
        "text = well_formed(output.text)",
        (
            f"{_PIPELINE}no_secret_is_stored_told_or_sent",
            f"{_PIPELINE}a_long_result_has_no_secret_in_its_file",
        ),
    ),
    Fault(
        "pipeline/a-secret-in-two-pieces",
        "Mask.feed",
        "whole = len(text) - (0 if last else self._withheld(text))",
        "whole = len(text)",
        (f"{_PIPELINE}no_secret_is_stored_told_or_sent",),
    ),
    Fault(
        "pipeline/a-circle-never-ends",
        "Loop._over",
        "return Mark.CIRCLES if repeats(self._context.of_turn(spec.ref.turn_id), spec.tools.by_name).is_over else None",
        "return None",
        (f"{_PIPELINE}a_circle_is_told_then_stopped_then_ended",),
    ),
    Fault(
        "guard/calls-are-not-refused",
        "Repeats.check",
        "            raise Repeated(REFUSAL)\n",
        "            return\n",
        (f"{_GUARD}the_same_call_again_and_again", f"{_PIPELINE}the_count_survives_a_restart"),
    ),
    Fault(
        "guard/only-the-same-call-counts",
        "repeats",
        "            seen.add(made)\n",
        "            seen = {made}\n",
        (f"{_GUARD}two_that_alternate_and_longer_cycles",),
    ),
    Fault(
        "guard/news-do-not-count",
        "repeats",
        "            else:\n                count = 0\n",
        "",
        (f"{_GUARD}what_is_no_circle",),
    ),
    Fault(
        "guard/polling-is-a-circle",
        "agent/calls/loop_guard.py",
        "_WHOLE, _POLL = 3, 1",
        "_WHOLE, _POLL = 3, 3",
        (f"{_GUARD}polling_may_go_on_three_times_as_long",),
    ),
    Fault(
        "repair/an-end-is-guessed-for-what-changes-something",
        "repaired",
        "found is None and not tool.changes:",
        "found is None:",
        (f"{_REPAIR}nearly_valid", f"{_REPAIR}an_editor_whose_order_was_cut_off_changes_nothing"),
    ),
    Fault(
        "repair/another-name-comes-before-a-parameter",
        "_taken",
        "(name != written and (name in found or name in taken))",
        "name == 0",
        (f"{_REPAIR}names_and_values_of_parameters",),
    ),
    Fault(
        "policy/deny-does-not-win",
        "rules",
        '        yield Rule(f"{key}.deny", deny, only=False)\n',
        '        yield Rule(f"{key}.deny", () if allow else deny, only=False)\n',
        (f"{_POLICY}patterns_and_groups",),
    ),
    Fault(
        "policy/a-rule-adds-tools",
        "Policy.why_not",
        "next((rule.key for rule in self if",
        "next((rule.key for rule in self[-1:] if",
        (f"{_POLICY}one_more_rule_never_adds_a_tool",),
    ),
    Fault(
        "permissions/who-writes-changes-the-prefix",
        "Permissions._decided",
        "there = Policy((*self._everywhere(), *self._in_session(turn, key)))",
        "there = Policy((*self._everywhere(), *self._of_sender(turn.messages[0].origin)))",
        (f"{_PERMISSIONS}the_tools_of_a_session_are_the_same_bytes_whoever_writes",),
    ),
    Fault(
        "permissions/the-first-sender-decides-for-all",
        "Permissions._decided",
        "[self._asker(message, room) for message in turn.messages]",
        "[self._asker(message, room) for message in turn.messages[:1]]",
        (f"{_PERMISSIONS}all_who_wrote_a_turn_count[1-2]",),
    ),
    Fault(
        "permissions/an-offer-outlives-what-is-said-of-people",
        "Permissions.offer",
        "            self.people.revision,\n",
        "",
        ("tests/bot/test_offers.py::test_in_a_group_it_goes_by_all_who_wrote_the_turn",),
    ),
    Fault(
        "permissions/an-offer-outlives-the-account-it-was-made-for",
        "Permissions.offer",
        "            *(account and account.label for account in accounts),\n",
        "",
        ("tests/bot/test_offers.py::test_an_account_has_its_rules_as_soon_as_it_knows_who_it_is",),
    ),
    Fault(
        "permissions/an-account-widens-its-channel",
        "Permissions._of_account",
        '            yield f"channels.{account.channel.name}.tools", plain.tools\n',
        "            pass\n",
        (f"{_PERMISSIONS}the_rules_of_an_account_come_upon_those_of_its_channel",),
    ),
)
