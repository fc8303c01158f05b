"""What the store promises: on disk, in one commit, fenced, and not lost with a damaged file."""

from tests.mutants import Fault

_SALVAGE = ("tests/bot/store/test_salvage.py::test_every_table_comes_over",)

FAULTS = (
    Fault(
        "store/programs-count-as-people",
        "bot/store/inbox.py",
        "used_in = conv_id if message.by_person else None",
        "used_in = conv_id",
        ("tests/bot/store/test_keeping.py::test_where_a_session_was_used_last_is_where_a_person_wrote",),
    ),
    Fault(
        "store/synchronous-off",
        "bot/store/database.py",
        "PRAGMA synchronous=FULL",
        "PRAGMA synchronous=OFF",
        ("tests/bot/store/test_database.py::test_a_commit_waits_for_the_disk",),
    ),
    Fault(
        "store/commit-per-unit",
        "bot/store/writer.py",
        """\
            if units:
                await self._commit(units)
""",
        """\
            for unit in units:
                await self._commit([unit])
""",
        ("tests/bot/store/test_database.py::test_writes_that_wait_share_a_commit",),
    ),
    Fault(
        "store/unit-not-undone",
        "bot/store/writer.py",
        'connection.execute("ROLLBACK TO unit")',
        "pass",
        ("tests/bot/store/test_database.py::test_one_of_several_writes_that_fails_undoes_itself_alone",),
    ),
    Fault(
        "store/epoch-not-compared",
        "bot/store/rows.py",
        "WHERE turn_id=? AND epoch=? AND state='running'",
        "WHERE turn_id=? AND epoch>=? AND state='running'",
        ("tests/bot/store/test_epochs.py::test_a_stale_run_is_refused_and_changes_nothing",),
    ),
    Fault(
        "store/state-not-compared",
        "bot/store/rows.py",
        "WHERE turn_id=? AND epoch=? AND state='running'",
        "WHERE turn_id=? AND epoch=?",
        ("tests/bot/store/test_epochs.py::test_a_run_that_has_ended_is_refused_and_changes_nothing",),
    ),
    Fault(
        "store/mark-not-stored",
        "bot/store/inbox.py",
        "            if mark:\n",
        "            if mark and not batch:\n",
        ("tests/bot/store/test_keeping.py::test_an_event_is_stored_once_and_its_mark_with_it",),
    ),
    Fault(
        "store/salvage-without-deliveries",
        "bot/store/salvage.py",
        '    "delivery": "delivery_id",\n',
        "",
        _SALVAGE,
    ),
    Fault(
        "store/salvage-without-tool-calls",
        "bot/store/salvage.py",
        '    "tool_call": ("turn_id", "SELECT turn_id FROM turn"),\n',
        "",
        _SALVAGE,
    ),
    Fault(
        "store/salvage-without-poll-offset",
        "bot/store/salvage.py",
        """    "kv": ("scope", "SELECT DISTINCT channel || ':' || account FROM conversation"),\n""",
        "",
        _SALVAGE,
    ),
)
