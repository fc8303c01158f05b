"""Where beats speak, what they cost, and what keeps them from it for a while."""

from tests.mutants import Fault

_PLACES = "tests/bot/background/test_beats_places.py::test_"
_BEATS = "tests/bot/background/test_beats.py::test_"
BEATS, STORE, CONFIG = "bot/background/beats.py", "bot/store/schedules.py", "bot/config/background.py"
_CLOSED = (f"{_PLACES}a_terminal_that_is_closed_hears_nothing_while_a_platform_is_there",)
_OPEN = (f"{_PLACES}a_terminal_that_is_open_is_where_the_owner_is",)
_LATER = (f"{_PLACES}who_is_nowhere_else_finds_it_in_the_terminal_later",)
_GONE = (f"{_PLACES}an_account_that_is_gone_is_no_place",)
_GATE = (f"{_PLACES}what_was_lost_is_said_again_only_through_the_gate",)
_CHEAP = (f"{_BEATS}by_default_a_beat_costs_the_same_however_much_was_said_before",)
_TOLD = (f"{_BEATS}that_the_budget_is_spent_is_told_once_a_day_with_the_moment_when_beats_go_on",)
_OTHERS = (f"{_BEATS}the_budget_of_an_owner_is_spent_by_their_own_beats",)

FAULTS = (
    Fault(
        "heartbeat-places/alerts-into-a-closed-terminal",
        "Beats._reaches",
        "return self.terminal_is_open()",
        "return True",
        _CLOSED,
    ),
    Fault(
        "heartbeat-places/no-terminal-is-ever-open",
        "EventBus.is_read",
        "any(one.session_key == session_key for one in self._subscriptions)",
        "False",
        _OPEN,
    ),
    Fault(
        "heartbeat-places/whoever-reads-everything-is-a-terminal",
        "EventBus.is_read",
        "any(one.session_key == session_key for",
        "any(one.session_key in (None, session_key) for",
        _CLOSED,
    ),
    Fault(
        "heartbeat-places/no-beats-without-a-platform",
        "Beats._session",
        "found[0] if found else (own, None))",
        "(own, None))",
        _LATER,
    ),
    Fault(
        "heartbeat-places/terminals-do-not-see-isolated-beats",
        "_tell",
        "if block.step is not None and session_key == console_key():",
        "if block.step is not None:",
        (*_OPEN, *_LATER),
    ),
    Fault(
        "heartbeat-places/told-in-a-session-that-no-terminal-reads",
        "_tell",
        "run = run_ref(turn_id or piece_key(block.source.key, block.piece), console_key(), epoch)",
        "run = run_ref(turn_id or piece_key(block.source.key, block.piece), session_key, epoch)",
        (*_OPEN, *_LATER),
    ),
    Fault(
        "heartbeat-places/an-account-that-is-gone-counts",
        "Conversations.reaches",
        " and not one.channel.account for one in self.accounts",
        " for one in self.accounts",
        _GONE,
    ),
    Fault(
        "heartbeat-places/said-again-at-night",
        "may_say_again",
        "facts.shown and by_day and not",
        "facts.shown and not",
        _GATE,
    ),
    Fault(
        "heartbeat-places/said-again-where-no-alerts-are-shown",
        "Beats._say_again",
        "        if not self.settings.shown_by(account.section).show_alerts:\n            return\n",
        "",
        _GATE,
    ),
    Fault(
        "heartbeat-places/said-again-and-not-known",
        "Schedules.say_again",
        "            edits.note_written(db, place, conv_id, session_key, key, words, now, made_from)\n",
        "            pass\n",
        _GATE,
    ),
    Fault(
        "heartbeat-places/beats-carry-the-history",
        "Heartbeat",
        "isolated: bool = setting(True",
        "isolated: bool = setting(False",
        _CHEAP,
    ),
    Fault(
        "heartbeat-places/beats-carry-the-files",
        "Heartbeat",
        "light_context: bool = setting(True",
        "light_context: bool = setting(False",
        _CHEAP,
    ),
    Fault(
        "heartbeat-places/a-spent-budget-is-told-to-nobody",
        "Beats._tell_of_rest",
        ', "budget": self._today()}',
        "}",
        _TOLD,
    ),
    Fault(
        "heartbeat-places/a-spent-budget-is-told-at-each-beat",
        "Beats._tell_of_rest",
        '"budget": self._today()}',
        '"budget": self.clock.now()}',
        _TOLD,
    ),
    Fault(
        "heartbeat-places/the-rest-ends-on-another-clock",
        "Beats.look",
        "day_start(self._today() + _DAY_AND_HALF, self._zone()), self._zone())",
        "day_start(self._today() + _DAY_AND_HALF, None), self._zone())",
        _TOLD,
    ),
    Fault(
        "heartbeat-places/events-find-the-budget-spent-in-silence",
        "Beats.begin",
        'if cause == "wake" and self._is_owners(beat.facts.session):',
        "if False:",
        (f"{_BEATS}an_event_that_finds_the_budget_spent_says_so_too",),
    ),
    Fault(
        "heartbeat-places/others-spend-the-budget-of-the-owner",
        "Beats.look",
        "if key == of or (mine and self._is_owners(key)))",
        "if key)",
        _OTHERS,
    ),
    Fault(
        "heartbeat-places/each-session-of-the-owner-has-a-budget",
        "Beats.look",
        "if key == of or (mine and self._is_owners(key)))",
        "if key == of)",
        _OTHERS,
    ),
    Fault(
        "heartbeat-places/owners-told-of-the-budgets-of-others",
        "Beats.begin",
        'if cause == "wake" and self._is_owners(beat.facts.session):',
        'if cause == "wake":',
        _OTHERS,
    ),
    Fault(
        "heartbeat-places/nobody-ever-wrote-and-it-beats-on",
        "Beats.look",
        "last_person=kept.last_person or began,",
        "last_person=kept.last_person or now,",
        (f"{_BEATS}where_nobody_has_ever_written_beats_end_seven_days_behind_their_beginning",),
    ),
    Fault(
        "heartbeat-places/beats-in-groups-without-rules",
        "Prompts._added",
        'turn.kind is TurnKind.BEAT and parse(turn.session_key).kind in ("direct", "main")',
        "turn.kind is TurnKind.BEAT",
        ("tests/bot/inbound/test_groups.py::test_beats_in_a_group_keep_its_rules",),
    ),
    Fault(
        "heartbeat-places/a-reminder-is-tried-for-ever",
        "_put_off",
        " and failures <= TRIES",
        "",
        ("tests/bot/background/test_due_times.py::test_a_reminder_that_fails_is_tried_three_times_more",),
    ),
)
