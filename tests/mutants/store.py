"""What the store promises: on disk, in one commit, fenced, and not lost with a damaged file."""

from tests.mutants import Fault

_SALVAGE = "tests/bot/store/test_salvage.py"
_BETWEEN = "test_rows_between_two_lost_pages_are_found_by_what_other_tables_know_of_them"

FAULTS = (
    Fault(
        "store/programs-count-as-people",
        "Inbox._accept_message",
        "used_in = conv_id if message.by_person else None",
        "used_in = conv_id",
        ("tests/bot/store/test_keeping.py::test_where_a_session_was_used_last_is_where_a_person_wrote",),
    ),
    Fault(
        "store/synchronous-off",
        "bot/store/database.py",
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF",
        ("tests/bot/store/test_database.py::test_a_commit_waits_for_the_disk",),
    ),
    Fault(
        "store/commit-per-unit",
        "Writer._run",
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
        "Writer._run_batch",
        'connection.execute("ROLLBACK" if is_first else "ROLLBACK TO unit")',
        'connection.execute("ROLLBACK") if is_first else None',
        ("tests/bot/store/test_database.py::test_one_of_several_writes_that_fails_undoes_itself_alone[1]",),
    ),
    Fault(
        "store/first-unit-not-undone",
        "Writer._run_batch",
        'connection.execute("ROLLBACK" if is_first else "ROLLBACK TO unit")',
        'None if is_first else connection.execute("ROLLBACK TO unit")',
        (
            "tests/bot/store/test_database.py::test_one_of_several_writes_that_fails_undoes_itself_alone[0]",
            "tests/bot/store/test_database.py::test_a_write_that_fails_alone_is_undone",
        ),
    ),
    Fault(
        "store/epoch-not-compared",
        "check_epoch",
        "WHERE turn_id=? AND epoch=? AND {held}",
        "WHERE turn_id=? AND epoch>=? AND {held}",
        ("tests/bot/store/test_epochs.py::test_a_stale_run_is_refused_and_changes_nothing",),
    ),
    Fault(
        "store/state-not-compared",
        "check_epoch",
        "else \"state='running'\"",
        'else "1"',
        ("tests/bot/store/test_epochs.py::test_a_run_that_has_ended_is_refused_and_changes_nothing",),
    ),
    Fault(
        "store/mark-not-stored",
        "Inbox.accept",
        "        if mark:\n",
        "        if mark and not batch:\n",
        ("tests/bot/store/test_keeping.py::test_an_event_is_stored_once_and_its_mark_with_it",),
    ),
    Fault(
        "store/salvage-ends-at-a-damaged-page",
        "_Table._walk",
        '                    self._take(f"{among} AND {key[0]}=?", *values, number)\n',
        "                    pass\n",
        (f"{_SALVAGE}::test_pages_that_cannot_be_read_cost_only_their_own_rows",),
    ),
    Fault(
        "store/salvage-without-known-keys",
        "_rescue",
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
        "_rescue",
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
        ("tests/bot/store/test_plans.py::test_a_predicate_is_that_of_an_index",),
    ),
    Fault(
        "store/a-read-that-fails-ends-the-start",
        "Database.read",
        "raise StoreUnavailable(self._failure) from error",
        "raise",
        ("tests/bot/test_starting.py::test_every_step_of_the_start_waits[turn]",),
    ),
    Fault(
        "store/lanes-do-not-wait",
        "Service._begin_runs",
        "await self._once_possible(self.parts.lanes.start)",
        "await self.parts.lanes.start()",
        ("tests/bot/test_starting.py::test_the_lanes_wait_as_well",),
    ),
    Fault(
        "store/a-part-fails-unseen",
        "Service._ended",
        'self.parts.health.obstacle = f"{task.get_name()} has failed: {error}"',
        "pass",
        ("tests/bot/test_starting.py::test_a_part_that_fails_is_seen",),
    ),
    Fault(
        "store/a-full-disk-ends-the-start",
        "passes",
        "return _code_of(error) in _PASSING",
        "return False",
        ("tests/bot/cli/test_full_disk.py::test_the_service_waits_red_and_goes_on_by_itself",),
    ),
    Fault(
        "store/a-full-disk-ends-the-workspace",
        "create_workspace",
        'raise StoreUnavailable(f"the workspace',
        'raise OSError(f"the workspace',
        ("tests/bot/cli/test_full_disk.py::test_the_service_waits_red_and_goes_on_by_itself[0]",),
    ),
    Fault(
        "store/damage-not-remembered",
        "Database.close",
        "if self._damage is None:",
        "if True:",
        ("tests/bot/store/test_salvage.py::test_damage_that_is_met_later_is_said_and_mended_at_the_next_start",),
    ),
    Fault(
        "store/changes-from-outside-not-looked-at",
        "take_mark",
        "(directory / FILE).exists() and looked == _looks(directory)",
        "True",
        (
            "tests/bot/store/test_salvage.py::test_only_what_was_not_closed_in_order_or_was_changed_since_is_read_to_its_end",
        ),
    ),
    Fault(
        "store/the-mark-of-an-orderly-end-stays",
        "take_mark",
        "    mark.unlink()\n",
        "",
        (
            "tests/bot/store/test_salvage.py::test_only_what_was_not_closed_in_order_or_was_changed_since_is_read_to_its_end",
        ),
    ),
    Fault(
        "store/always-read-to-the-end",
        "Store.open",
        "thorough=not self._ended_well",
        "thorough=True",
        (
            "tests/bot/store/test_salvage.py::test_only_what_was_not_closed_in_order_or_was_changed_since_is_read_to_its_end",
        ),
    ),
    Fault(
        "store/migrations-with-foreign-keys-on",
        "migrate",
        '    connection.execute("PRAGMA foreign_keys=OFF")\n',
        "",
        ("tests/bot/store/test_migrate.py::test_tables_that_others_point_to_can_be_built_anew",),
    ),
    Fault(
        "store/migrations-not-checked",
        "migrate",
        "if broken:",
        "if False:",
        ("tests/bot/store/test_migrate.py::test_a_migration_that_breaks_something_is_undone_alone",),
    ),
    Fault(
        "store/migrations-without-a-copy",
        "Database.open",
        "                    await connection.call(partial(_back_up, path))\n",
        "",
        ("tests/bot/store/test_migrate.py::test_a_migration_that_changes_only_data",),
    ),
    Fault(
        "store/a-later-version-taken-for-damage",
        "_wrong_number",
        "copy - APPLICATION not in fitting",
        "False",
        ("tests/bot/store/test_migrate.py::test_an_earlier_program_leaves_data_of_a_later_one_alone",),
    ),
    Fault(
        "store/salvage-into-the-newest-schema",
        "_rescue",
        "migrate(target, _version(source))",
        "migrate(target)",
        ("tests/bot/store/test_migrate.py::test_a_damaged_store_of_an_earlier_version_is_recovered_and_migrated",),
    ),
    Fault(
        "store/a-short-file-is-taken-for-a-store",
        "find_problem",
        "len(header) < _HEADER or ",
        "",
        ("tests/bot/store/test_salvage.py::test_a_file_shorter_than_a_header_is_kept_and_a_new_store_begun",),
    ),
    Fault(
        "store/recovery-takes-what-a-living-worker-has",
        "bot/store/recovery.py",
        '"worker IS NOT ?"',
        '"? IS NOT NULL"',
        ("tests/bot/persistence/test_turns.py::test_only_turns_whose_lease_is_gone_are_taken",),
    ),
    Fault(
        "store/a-claim-names-no-worker",
        "Claims._take",
        "state='running', worker=?3,",
        "state='running', worker=?3 || '?',",
        ("tests/bot/persistence/test_turns.py::test_only_turns_whose_lease_is_gone_are_taken",),
    ),
    Fault(
        "store/a-stale-run-parks",
        "Approvals.park",
        "        rows.check_epoch(db, run)\n",
        "",
        ("tests/bot/store/test_epochs.py::test_a_stale_run_is_refused_and_changes_nothing",),
    ),
)
