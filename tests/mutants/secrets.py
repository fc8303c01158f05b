"""Secrets in what is written down."""

from tests.mutants import Fault

_TEST = "tests/bot/test_redaction.py::test_no_secret_is_in_a_log_line"

FAULTS = (
    Fault(
        "secrets/not-masked",
        "bot/cli/run.py",
        "yield value.get_secret_value()",
        "yield from ()",
        (f"{_TEST}[telegram]",),
    ),
    Fault(
        "secrets/of-accounts-not-masked",
        "bot/cli/run.py",
        "yield from _within(tuple(value.values()))",
        "yield from _within(tuple(value.values())[:8])",
        (f"{_TEST}[second account]",),
    ),
    Fault(
        "secrets/second-key-not-masked",
        "bot/cli/run.py",
        "        for below in value:",
        "        for below in value[:1]:",
        (f"{_TEST}[second key]",),
    ),
    Fault(
        "secrets/key-of-the-environment-not-masked",
        "bot/config/choose_model.py",
        'keys = [environ.get(known.key_variable or "", "")',
        'keys = [""',
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
