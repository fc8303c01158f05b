"""Who gets in, and what others may see."""

from tests.mutants import Fault

FAULTS = (
    Fault(
        "access/rules-of-another-account",
        "bot/wiring.py",
        "account = accounts.of(message.origin.place)",
        "account = next(one for one in accounts if one.channel.name == message.origin.place.channel)",
        ("tests/wire/test_accounts.py::test_each_account_has_its_own_people_answers_and_session",),
    ),
    Fault(
        "access/accounts-share-a-session",
        "bot/wiring.py",
        "with_account=message.origin.place.channel in several",
        "with_account=False",
        ("tests/wire/test_accounts.py::test_each_account_has_its_own_people_answers_and_session",),
    ),
    Fault(
        "access/groups-let-in",
        "bot/inbound/access.py",
        "if place.kind is not ChatKind.DIRECT:",
        "if False:",
        ("tests/bot/test_inbound.py::test_groups_wait_for_their_own_rules",),
    ),
    Fault(
        "access/every-message-of-a-stranger-kept",
        "bot/inbound/pipeline.py",
        'event_key=f"x:{origin.sender}"',
        "event_key=message.event_key",
        ("tests/bot/test_inbound.py::test_a_stranger_is_told_nothing_and_costs_one_small_message",),
    ),
    Fault(
        "access/any-token",
        "bot/gateway/access.py",
        "hmac.compare_digest(sent.strip(), self._token)",
        "sent",
        ("tests/bot/gateway/test_access.py::test_a_wrong_token_is_refused",),
    ),
    Fault(
        "access/commands-see-the-environment",
        "agent/tools/exec.py",
        "**kept, ",
        "**environ, ",
        ("tests/agent/tools/test_exec.py::test_sees_no_secret_no_input_and_no_terminal",),
    ),
    Fault(
        "access/two-processes-one-store",
        "bot/store/database.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        (
            "tests/bot/store/test_database.py::test_a_second_process_is_refused_until_the_first_is_gone_however_it_ended",
        ),
    ),
    Fault(
        "access/others-may-read-the-store",
        "bot/store/database.py",
        "os.O_CREAT | os.O_RDWR, 0o600)",
        "os.O_CREAT | os.O_RDWR, 0o644)",
        ("tests/bot/store/test_database.py::test_nobody_else_may_read_it",),
    ),
    Fault(
        "access/foreign-hosts-answered",
        "bot/gateway/access.py",
        "if not _LOOPBACK_HOST.fullmatch(host):",
        "if False:",
        (
            "tests/bot/gateway/test_access.py::test_without_a_token_web_pages_stay_outside",
            "tests/bot/gateway/test_access.py::test_the_rules_hold_for_every_route",
        ),
    ),
    Fault(
        "access/programs-are-trusted-without-a-token",
        "bot/inbound/access.py",
        "is not ChatKind.API or origin.sender == OWNER",
        "is not None",
        (
            "tests/bot/gateway/test_access.py::test_without_a_token_the_service_is_nobodys_business",
            "tests/bot/gateway/test_access.py::test_commands_of_this_machine_are_not_for_those_without_a_token",
        ),
    ),
    Fault(
        "access/all-sessions-open-without-a-token",
        "bot/gateway/access.py",
        '"agent:main:http:direct:" if self is Caller.PERSON else ""',
        '""',
        ("tests/bot/gateway/test_access.py::test_without_a_token_there_are_only_sessions_of_ones_own",),
    ),
    Fault(
        "access/everybody-has-the-token",
        "bot/gateway/access.py",
        "Caller.PERSON if token is None else Caller.TOKEN",
        "Caller.TOKEN",
        ("tests/bot/gateway/test_access.py::test_without_a_token_there_are_only_sessions_of_ones_own",),
    ),
    Fault(
        "access/runs-of-others-shown",
        "bot/gateway/agent_routes.py",
        " or not view.session_key.startswith(caller.sessions)",
        "",
        (
            "tests/bot/gateway/test_access.py::test_without_a_token_there_are_only_sessions_of_ones_own[agent:main:main]",
        ),
    ),
    Fault(
        "access/others-heard-as-they-speak",
        "bot/bus.py",
        "wanted and session_key.startswith(self.sessions)",
        "wanted",
        ("tests/bot/gateway/test_access.py::test_without_a_token_nothing_is_heard_of_other_sessions",),
    ),
    Fault(
        "access/what-others-said-is-replayed",
        "bot/store/events.py",
        "instr(session_key, ?5) = 1",
        "?5 = ?5",
        ("tests/bot/gateway/test_access.py::test_without_a_token_nothing_is_heard_of_other_sessions",),
    ),
    Fault(
        "access/strangers-named-each-time",
        "bot/inbound/pipeline.py",
        "            self._strangers.add(stranger)\n",
        "",
        ("tests/bot/test_inbound.py::test_a_stranger_is_named_once_in_the_log",),
    ),
)
