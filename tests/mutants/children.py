"""Sub-agents: told of once, quiet, stopped with their parent, and allowed no more than it."""

from tests.mutants import Fault

_CHILDREN = "tests/bot/children/test_children.py::test_"
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
)
