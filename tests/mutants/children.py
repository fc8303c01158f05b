"""Sub-agents: told of once, quiet, stopped with their parent, and allowed no more than it."""

from tests.mutants import Fault

_CHILDREN = "tests/bot/children/test_children.py::test_"
_READS = "tests/bot/children/test_what_it_reads.py::test_"
_OUTAGES = "tests/bot/children/test_outages.py::test_"
_OUTSIDE = "tests/bot/children/test_outside.py::test_"
_ONCE = f"{_CHILDREN}what_a_sub_agent_says_last_comes_back_once_and_word_for_word"
_STOPPED = f"{_CHILDREN}it_is_stopped_with_the_conversation_that_has_started_it"

FAULTS = (
    Fault(
        "children/speaks-to-people",
        "RunJournal.__init__",
        "self._quiet = turn.settings.child is not None",
        "self._quiet = False",
        (_ONCE,),
    ),
    Fault(
        "children/end-is-not-told",
        "end_turn",
        "    if is_child:\n        child_ends.tell_end(db, turn_id, outcome, kind, now)\n",
        "",
        (_ONCE,),
    ),
    Fault(
        "children/bears-nothing",
        "tell_end",
        "origins=codec.ORIGINS.dump(origins) if origins else",
        "origins=",
        (f"{_CHILDREN}what_it_says_bears_what_it_has_read",),
    ),
    Fault(
        "children/goes-on-behind-a-stop",
        "stop_session",
        'for other in _busy(db, f"{session_key}{CHILD}"):',
        "for other in ():",
        (_STOPPED,),
    ),
    Fault(
        "children/has-every-tool",
        "narrowed",
        "if name in rules.tools and name != STAY_SILENT",
        "if name != STAY_SILENT",
        (f"{_CHILDREN}a_sub_agent_is_offered_no_more_than_what_started_it_could_call",),
    ),
    Fault(
        "children/any-number",
        "Children.start",
        "if working >= most:",
        "if working > 99:",
        (f"{_CHILDREN}five_of_a_conversation_work_at_the_same_time_and_no_more",),
    ),
    Fault(
        "children/takes-places-of-people",
        "Lanes._pump",
        " - self._running[CHILDREN]",
        "",
        (f"{_CHILDREN}runs_of_sub_agents_have_places_of_their_own",),
    ),
    Fault(
        "children/sees-every-session",
        "Kin.check",
        "and not self.sees_all:",
        "and not self.turn:",
        (f"{_CHILDREN}a_conversation_sees_its_own_tree_and_an_owner_everything",),
    ),
    Fault(
        "children/label-is-kept",
        "bot/store/forgetting.py",
        '_OF_SESSIONS = ("child", ',
        "_OF_SESSIONS = (",
        (f"{_CHILDREN}what_a_sub_agent_was_asked_goes_with_its_person",),
    ),
    Fault(
        "children/label-is-kept-in-a-group",
        "_delete_turns",
        """    db.execute(f"UPDATE child SET label='' WHERE by_turn {_OWN}", (turns,))\n""",
        "",
        (f"{_CHILDREN}a_label_of_somebody_who_is_forgotten_goes_from_the_session_of_a_group",),
    ),
    Fault(
        "children/what-models-write-is-of-people",
        "of_others",
        '_OF_SESSIONS.sub("", text) if labelled else text',
        "text",
        (
            f"{_READS}an_address_in_a_task_that_was_made_from_a_page_is_asked_about",
            f"{_READS}an_address_that_a_sub_agent_made_from_a_page_is_asked_about",
        ),
    ),
    Fault(
        "children/each-address-of-a-task-is-asked-about",
        "Pipeline._texts",
        "labelled=bool(entry.message.origins)",
        "labelled=True",
        (f"{_READS}an_address_in_a_task_of_which_nobody_else_knows_is_fetched",),
    ),
    Fault(
        "children/what-was-cut-is-not-told",
        "_said",
        'if text and kind not in ("assistant_cut", "note"):',
        "if text:",
        (f"{_READS}a_long_answer_comes_back_with_what_the_limit_of_output_has_cut",),
    ),
    Fault(
        "children/a-task-is-changed",
        "composer",
        "                yield message.text\n            elif message.text:",
        "                yield harmless(message.text)\n            elif message.text:",
        (f"{_READS}a_task_stands_as_it_is",),
    ),
    Fault(
        "children/what-it-says-is-changed",
        "composer",
        'unfenced(message.text, "subagent")',
        "harmless(message.text)",
        (f"{_READS}what_it_says_stands_as_it_is",),
    ),
    Fault(
        "children/leave-their-fence",
        "composer",
        'unfenced(message.text, "subagent")',
        "message.text",
        (f"{_READS}what_it_says_does_not_leave_its_fence",),
    ),
    Fault(
        "children/leave-their-fence-unseen",
        "agent/fences.py",
        'f"[^{_UNSEEN}{_NEVER_SEEN}]"',
        'f"[^{_UNSEEN}]"',
        (f"{_READS}what_it_says_does_not_leave_its_fence",),
    ),
    Fault(
        "children/ask-namelessly",
        "RunJournal.park",
        "if self._quiet:",
        "if False:",
        (
            f"{_CHILDREN}what_it_asks_for_is_asked_where_its_person_is",
            f"{_CHILDREN}a_question_says_which_sub_agent_asks",
        ),
    ),
    Fault(
        "children/fail-in-an-outage",
        "RunJournal.park_for_model",
        "self.turn.kind in BY_THEMSELVES or for_program",
        "self._by_itself or for_program",
        (f"{_OUTAGES}an_outage_delays_a_sub_agent_and_its_conversation_is_told_once",),
    ),
    Fault(
        "children/wait-for-ever",
        "OutageWatch._look",
        "min(turn.most or self._max_age, self._max_age)",
        "self._max_age",
        (f"{_OUTAGES}it_waits_no_longer_than_it_may_take",),
    ),
    Fault(
        "children/tell-people-of-outages",
        "OutageWatch._blocks",
        "turn.settings.child or ",
        "",
        (f"{_OUTAGES}it_waits_no_longer_than_it_may_take",),
    ),
    Fault(
        "children/given-up-before-people",
        "OutageWatch._look",
        "if told else ()",
        "",
        (f"{_OUTAGES}it_waits_no_longer_than_it_may_take",),
    ),
    Fault(
        "children/owners-hear-of-their-keys-elsewhere",
        "Outages.park",
        "where.conv_id if blocks else None",
        "where.conv_id",
        (f"{_OUTAGES}it_waits_no_longer_than_it_may_take",),
    ),
    Fault(
        "children/parents-sleep-when-they-are-given-up",
        "Lanes._left",
        "if row == CHILDREN:",
        "if False:",
        (f"{_OUTAGES}it_waits_no_longer_than_it_may_take",),
    ),
    Fault(
        "children/guests-are-others",
        "Kin._message",
        "context.stands()",
        "context.bears()",
        (f"{_READS}for_a_guest_it_fetches_what_they_may_fetch_themselves",),
    ),
    Fault(
        "children/people-are-asked-in-vain",
        "SessionsSendTool.sink",
        "kin.sees_all and not",
        "not",
        (f"{_CHILDREN}nobody_is_asked_whether_a_guest_may_write_to_a_session_that_they_do_not_see",),
    ),
    Fault(
        "children/what-was-sent-is-not-known",
        "close_calls",
        "if name in (SPAWN, SEND):",
        "if name == SPAWN:",
        (f"{_OUTSIDE}after_a_crash_the_model_is_told_whether_it_has_written_to_a_session",),
    ),
    Fault(
        "children/programs-write-to-them",
        "_of_people",
        "if CHILD in session_key:",
        "if CHILD == session_key:",
        (f"{_OUTSIDE}programs_write_to_no_sub_agent",),
    ),
    Fault(
        "children/are-never-pruned",
        "bot/store/sessions.py",
        "instr(one.session_key, '{CHILD}')=0",
        "1",
        (f"{_OUTSIDE}what_it_has_done_is_pruned_and_it_can_be_asked_again",),
    ),
)
