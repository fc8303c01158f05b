"""Secrets in what is written down."""

from tests.mutants import Fault

_TEST = "tests/bot/test_redaction.py::test_no_secret_is_in_a_log_line"

FAULTS = (
    Fault(
        "secrets/telegram-token-not-masked",
        "bot/cli/run.py",
        "(config.channels.telegram.token, config.gateway.token)",
        "(config.gateway.token,)",
        (f"{_TEST}[telegram]",),
    ),
    Fault(
        "secrets/gateway-token-not-masked",
        "bot/cli/run.py",
        "(config.channels.telegram.token, config.gateway.token)",
        "(config.channels.telegram.token,)",
        (f"{_TEST}[gateway]",),
    ),
    Fault(
        "secrets/keys-not-masked",
        "bot/cli/run.py",
        "for key in provider.api_keys]",
        "for key in provider.api_keys[:1]]",
        (f"{_TEST}[second key]",),
    ),
    Fault(
        "secrets/key-of-the-environment-not-masked",
        "bot/cli/run.py",
        'environ.get("ANTHROPIC_API_KEY", "")',
        '""',
        (f"{_TEST}[ANTHROPIC_API_KEY]",),
    ),
    Fault(
        "secrets/log-lines-not-cleaned",
        "bot/telemetry/logs.py",
        "return self._redactor.clean(super().format(record))",
        "return super().format(record)",
        (_TEST,),
    ),
)
