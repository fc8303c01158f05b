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
)
