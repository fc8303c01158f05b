"""Faults in how jobs are ordered and the heartbeat is steered, and by whom."""

from tests.mutants import Fault

ORDERS = "tests/bot/background/test_schedule.py::test_"
STEERED = "tests/bot/background/test_beats_places.py::test_"
HTTP = "tests/bot/gateway/test_heartbeat.py::test_"
MANAGED = (f"{ORDERS}jobs_rest_go_on_run_and_are_deleted",)

FAULTS = (
    Fault(
        "heartbeat-speak/anybody-schedules-by-the-tool",
        "_Asker.why_not",
        "        if tool.owner_only and not self.is_owner:\n            return NO_OWNER\n",
        "",
        (f"{ORDERS}in_the_session_that_all_share_only_owners_can",),
    ),
    Fault(
        "heartbeat-speak/the-tool-is-offered-to-anybody",
        "Permissions._decided",
        'elif tool.owner_only and not (key.kind == "main" or (room.owned and not by_program)):',
        "elif tool.owner_only and not key.kind:",
        (f"{ORDERS}it_is_there_where_only_owners_write",),
    ),
    Fault(
        "heartbeat-speak/the-tool-goes-by-who-asks",
        "Permissions._decided",
        'elif tool.owner_only and not (key.kind == "main" or (room.owned and not by_program)):',
        "elif tool.owner_only and not all(map(self.people.is_owner, turn.messages)):",
        (f"{ORDERS}it_goes_by_the_session_and_not_by_who_asks",),
    ),
    Fault(
        "heartbeat-speak/a-command-for-anybody",
        "build",
        "run=schedule, arguments=ScheduleArguments",
        'run=schedule, arguments=ScheduleArguments, guests="direct"',
        (f"{ORDERS}for_others_there_is_no_such_command",),
    ),
    Fault(
        "heartbeat-speak/the-same-order-is-another-job",
        "Jobs.add",
        "        job = next((one for one in jobs if one.job_id == job_id), None)\n",
        "        job = None\n",
        (f"{ORDERS}the_same_order_adds_one_job_and_there_are_only_so_many",),
    ),
    Fault(
        "heartbeat-speak/any-number-of-jobs",
        "Jobs.add",
        "await store.schedules.put(job, MOST)",
        "await store.schedules.put(job, 1000 * MOST)",
        (f"{ORDERS}the_same_order_adds_one_job_and_there_are_only_so_many",),
    ),
    Fault(
        "heartbeat-speak/a-job-that-nobody-could-read",
        "Jobs._job",
        "if place.kind is ChatKind.API or not",
        "if not",
        (f"{ORDERS}mistakes_in_a_chat",),
    ),
    Fault(
        "heartbeat-speak/no-session-that-terminals-show",
        "Jobs._job",
        "own=own and place.kind is not ChatKind.CONSOLE,",
        "own=own,",
        (f"{ORDERS}in_the_terminal_it_runs_in_the_session_that_the_terminal_shows",),
    ),
    Fault(
        "heartbeat-speak/without-a-name-the-only-one-is-meant",
        "_found",
        "[job for job in jobs if wanted and job",
        "[job for job in jobs if job",
        (f"{ORDERS}mistakes_of_who_names_no_job",),
    ),
    Fault(
        "heartbeat-speak/one-of-several-is-meant",
        "_found",
        "    if len(found) == 1:\n",
        "    if found:\n",
        (f"{ORDERS}several_of_a_name_are_told_apart",),
    ),
    Fault(
        "heartbeat-speak/what-was-due-at-rest-is-made-up-for",
        "Jobs.carry_out",
        '        if order == "resume":\n',
        '        if order == "resume" and next_at is None:\n',
        MANAGED,
    ),
    Fault(
        "heartbeat-speak/times-of-another-clock",
        "Jobs._at",
        "zone_named(job.schedule.zone) if isinstance(job.schedule, Cron) else None",
        "zone_named('') if isinstance(job.schedule, Cron) else None",
        (f"{ORDERS}times_are_those_of_the_zone_that_was_asked_for",),
    ),
    Fault(
        "heartbeat-speak/nobody-looks-at-a-new-job",
        "Jobs.add",
        "            self.dispatcher.hurry()\n        assert",
        "        assert",
        (f"{ORDERS}an_order_hurries_who_looks_what_is_due",),
    ),
    Fault(
        "heartbeat-speak/a-dry-beat-is-one",
        "Control.beat",
        'beats.look("due") if dry else beats.begin("now")',
        'beats.begin("now")',
        (f"{HTTP}a_beat_dry_and_then_really",),
    ),
    Fault(
        "heartbeat-speak/off-is-on",
        "Control.carry_out",
        'switch(action == "on")',
        'switch(action != "now")',
        (f"{STEERED}off_lasts_over_a_restart_until_it_is_on",),
    ),
    Fault(
        "heartbeat-speak/persons-steer-the-heartbeat",
        "HeartbeatRoutes.wake",
        "        only_owners(request, _REFUSAL)\n",
        "",
        (f"{HTTP}without_a_token_it_is_shut",),
    ),
    Fault(
        "heartbeat-speak/the-command-itself-is-in-the-way",
        "Schedules.beat_facts",
        "(?1, ?2) AND {WAITING} AND {rows.FOR_A_RUN})",
        "(?1, ?2) AND {WAITING})",
        (f"{STEERED}a_beat_now_is_one_also_where_none_is_due",),
    ),
)
