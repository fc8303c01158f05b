"""Sub-agents: told of once, quiet, stopped with their parent, and allowed no more than it."""

from tests.mutants import Fault

_CHILDREN = "tests/bot/children/test_children.py::test_"
_READS = "tests/bot/children/test_what_it_reads.py::test_"
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
