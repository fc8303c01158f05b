"""What a configuration may not say."""

from tests.mutants import Fault

_CLI = "tests/bot/config/test_cli.py::test_"

FAULTS = (
    Fault(
        "config/short-tokens",
        "bot/config/values.py",
        "len(token) < _SHORTEST_TOKEN or ",
        "",
        ("tests/bot/config/test_load.py::TestMistakes::test_a_weak_token",),
    ),
    Fault(
        "config/commands-for-a-port-without-a-token",
        "bot/config/checks.py",
        'config.tools.exec.security == "full" and config.gateway.token is None',
        "False",
        (f"{_CLI}check_says_what_run_says",),
    ),
    Fault(
        "config/check-says-less-than-run",
        "bot/cli/config.py",
        "cwd, service=True)",
        "cwd)",
        (f"{_CLI}check_says_what_run_says",),
    ),
    Fault(
        "config/nobody-answered-without-a-warning",
        "bot/config/checks.py",
        "for account, bot in section.bots().items() if section.enabled else ():",
        "for account, bot in ():",
        (f"{_CLI}a_channel_that_would_answer_nobody_is_a_warning",),
    ),
)
