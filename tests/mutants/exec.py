"""Processes of commands: all of them end, also after a crash."""

from tests.mutants import Fault

_EXEC = "tests/agent/tools/test_exec.py::test_"
_LEFTOVERS = "tests/bot/test_leftovers.py::test_"

FAULTS = (
    Fault(
        "exec/those-who-flee-are-not-kept",
        "agent/tools/gate.py",
        "ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)",
        "pass",
        (f"{_EXEC}what_detaches_itself_ends_with_its_command",),
    ),
    Fault(
        "exec/signals-loosen-the-gate",
        "agent/tools/gate.py",
        "signal.signal(number, signal.SIG_IGN)",
        "pass",
        (f"{_EXEC}signals_to_its_own_group_do_not_loosen_the_gate",),
    ),
    Fault(
        "exec/the-tree-is-not-ended",
        "agent/tools/process.py",
        "            end_tree(self.pid, self._hear)\n",
        "",
        (f"{_EXEC}what_detaches_itself_ends_with_its_command",),
    ),
    Fault(
        "exec/those-below-are-not-killed",
        "agent/tools/leftovers.py",
        "        signal_below(leader, signal.SIGKILL)\n",
        "",
        (f"{_EXEC}what_detaches_itself_ends_with_its_command",),
    ),
    Fault(
        "exec/leftovers-of-stopped-turns-forgotten",
        "bot/store/recovery.py",
        "WHERE {WITH_PROCESS}",
        "WHERE {WITH_PROCESS} AND state='running'",
        (f"{_LEFTOVERS}what_a_crash_left_is_ended_at_the_next_start[stopped, not cancelled yet]",),
    ),
    Fault(
        "exec/ended-processes-looked-for",
        "bot/store/turns.py",
        "SET state=?, pid=NULL, pid_started=NULL WHERE",
        "SET state=? WHERE",
        (f"{_LEFTOVERS}a_call_that_has_ended_leaves_no_process_to_look_for",),
    ),
    Fault(
        "exec/ended-leftovers-not-forgotten",
        "bot/service.py",
        "        await store.recovery.forget(over)\n",
        "",
        (f"{_LEFTOVERS}what_a_crash_left_is_ended_at_the_next_start",),
    ),
)
