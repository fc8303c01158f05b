"""What the store promises: on disk, in one commit, fenced, and not lost with a damaged file."""

from tests.mutants import Fault

_SALVAGE = "tests/bot/store/test_salvage.py"
_BETWEEN = "test_rows_between_two_lost_pages_are_found_by_what_other_tables_know_of_them"

FAULTS = (
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
        "        if mark:\n",
        "        if mark and not batch:\n",
        ("tests/bot/store/test_keeping.py::test_an_event_is_stored_once_and_its_mark_with_it",),
    ),
    Fault(
        "store/salvage-ends-at-a-damaged-page",
        "bot/store/salvage.py",
        '                    self._take(f"{among} AND {key[0]}=?", *values, number)\n',
        "                    pass\n",
        (f"{_SALVAGE}::test_pages_that_cannot_be_read_cost_only_their_own_rows",),
    ),
    Fault(
        "store/salvage-without-known-keys",
        "bot/store/salvage.py",
        "            table.copy_by_known_keys()\n",
        "            pass\n",
        (f"{_SALVAGE}::{_BETWEEN}",),
    ),
    Fault(
        "store/salvage-without-poll-offset",
        "bot/store/salvage.py",
        """{"kv": "SELECT DISTINCT channel || ':' || account FROM conversation"}""",
        "dict[str, str]()",
        (f"{_SALVAGE}::{_BETWEEN}",),
    ),
    Fault(
        "store/salvage-silent-about-what-was-lost",
        "bot/store/salvage.py",
        "if not t.complete",
        "if False",
        (f"{_SALVAGE}::test_pages_that_cannot_be_read_cost_only_their_own_rows",),
    ),
    Fault(
        "store/migration-loses-turns",
        "bot/store/migrations/0005_breadth.sql",
        "resumed_at FROM turn;",
        "resumed_at FROM turn WHERE state='running';",
        ("tests/bot/store/test_migrate.py::test_a_store_of_each_earlier_version_keeps_its_rows_and_goes_on",),
    ),
    Fault(
        "store/predicate-unlike-its-index",
        "bot/store/indexes.py",
        "OPEN_TURN = \"state IN ('queued','running','parked')\"",
        "OPEN_TURN = \"state IN ('queued','parked','running')\"",
        ("tests/bot/store/test_indexes.py::test_a_predicate_is_that_of_an_index",),
    ),
)
