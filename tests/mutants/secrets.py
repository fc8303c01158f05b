"""Secrets in what is written down."""

from tests.mutants import Fault

_TEST = "tests/bot/telemetry/test_redaction.py::test_no_secret_is_in_a_log_line"

FAULTS = (
    Fault(
        "secrets/not-masked",
        "_within",
        "yield value.get_secret_value()",
        "yield from ()",
        (f"{_TEST}[telegram]",),
    ),
    Fault(
        "secrets/of-accounts-not-masked",
        "_within",
        "yield from _within(tuple(value.values()))",
        "yield from _within(tuple(value.values())[:8])",
        (f"{_TEST}[second account]",),
    ),
    Fault(
        "secrets/second-key-not-masked",
        "_within",
        "        for below in value:",
        "        for below in value[:1]:",
        (f"{_TEST}[second key]",),
    ),
    Fault(
        "secrets/key-of-the-environment-not-masked",
        "environment_secrets",
        'keys = [environ.get(known.key_variable or "", "")',
        'keys = [""',
        (f"{_TEST}[ANTHROPIC_API_KEY]",),
    ),
    Fault(
        "secrets/log-lines-not-cleaned",
        "set_up",
        "redactor.clean(str(line))",
        "str(line)",
        (_TEST,),
    ),
    Fault(
        "secrets/shown-inside-urls",
        "_shown",
        "else mask_url(value)[0]",
        "else value",
        ("tests/bot/config/test_cli.py::test_get_shows_no_secret_inside_urls_or_parameters",),
    ),
    Fault(
        "secrets/memory-open-to-commands",
        "shield",
        "library.prctl(_SET_DUMPABLE, 0, 0, 0, 0)",
        "pass",
        ("tests/bot/config/test_shield.py::test_the_process_forgets_secrets_and_is_closed",),
    ),
    Fault(
        "secrets/environment-not-wiped",
        "shield",
        "ctypes.memset(address, 0, len(os.fsencode(value)))",
        "pass",
        ("tests/bot/config/test_shield.py::test_the_process_forgets_secrets_and_is_closed",),
    ),
    Fault(
        "secrets/the-service-is-not-shielded",
        "prepare",
        "    shield(known)\n",
        "",
        ("tests/bot/config/test_shield.py::test_a_running_service_shows_no_secret",),
    ),
    Fault(
        "secrets/others-may-read-the-log",
        "_ToFile._open.private",
        "os.fchmod(descriptor, 0o600)",
        "pass",
        ("tests/bot/telemetry/test_logs.py::test_every_file_of_the_log_is_its_owners_alone",),
    ),
)
