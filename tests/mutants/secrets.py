"""Secrets in what is written down."""

from tests.mutants import Fault

_TEST = "tests/bot/telemetry/test_redaction.py::test_no_secret_is_in_a_log_line"
_SHAPES = "tests/bot/telemetry/test_shapes.py::test_"
_CANARY = "tests/bot/telemetry/test_canary.py::test_no_key_is_in_anything_that_it_left"
_ENVIRONMENTS = "tests/bot/test_environments.py::test_"
_REFERENCES = "tests/bot/config/test_references.py::test_"

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
        "_starred",
        "else mask_url(value)[0]",
        "else value",
        ("tests/bot/config/test_cli.py::test_get_shows_no_secret_inside_urls_or_parameters",),
    ),
    Fault(
        "secrets/memory-open-to-commands",
        "shield",
        "library.prctl(_SET_DUMPABLE, 0, 0, 0, 0)",
        "pass",
        ("tests/bot/config/test_variables.py::test_the_process_forgets_secrets_and_is_closed",),
    ),
    Fault(
        "secrets/environment-not-wiped",
        "shield",
        "ctypes.memset(address, 0, len(os.fsencode(value)))",
        "pass",
        ("tests/bot/config/test_variables.py::test_the_process_forgets_secrets_and_is_closed",),
    ),
    Fault(
        "secrets/the-service-is-not-shielded",
        "prepare",
        "    shield(known)\n",
        "",
        ("tests/bot/config/test_variables.py::test_a_running_service_shows_no_secret",),
    ),
    Fault(
        "secrets/others-may-read-the-log",
        "_ToFile._open.private",
        "os.fchmod(descriptor, 0o600)",
        "pass",
        ("tests/bot/telemetry/test_logs.py::test_every_file_of_the_log_is_its_owners_alone",),
    ),
    Fault(
        "secrets/shapes-not-masked",
        "Redactor.clean",
        "return shapes.replaced(text, MASK)",
        "return text",
        (f"{_SHAPES}it_is_replaced_whole", _CANARY),
    ),
    Fault(
        "secrets/a-shape-in-two-pieces",
        "Redactor.withheld",
        "begun = max(begun, shapes.unfinished(text))",
        "pass",
        (f"{_SHAPES}it_is_replaced_wherever_it_is_cut",),
    ),
    Fault(
        "secrets/not-as-json-writes-them",
        "Redactor.learn",
        "*known, *in_json}",
        "*known}",
        (f"{_SHAPES}known_values_are_found_as_json_writes_them",),
    ),
    Fault(
        "secrets/a-model-is-told",
        "MaskedClient.stream",
        "if self._holds_secret(request):",
        "if False:",
        (f"{_SHAPES}a_model_is_neither_told_nor_says_one",),
    ),
    Fault(
        "secrets/a-model-says-one",
        "MaskedClient.stream",
        "message = masked(part.message, self._redactor)",
        "message = part.message",
        (f"{_SHAPES}a_model_is_neither_told_nor_says_one", _CANARY),
    ),
    Fault(
        "secrets/an-error-names-one",
        "MaskedClient.stream",
        "clean(error.detail)",
        "error.detail",
        (f"{_SHAPES}an_error_of_a_model_names_none",),
    ),
    Fault(
        "secrets/what-people-write-is-kept",
        "unsecret",
        ".join(texts)) == whole:",
        ".join(texts)):",
        (_CANARY,),
    ),
    Fault(
        "secrets/the-prompt-is-kept",
        "Prompts.made",
        "clean = inside.overflow.clean",
        "clean = str",
        (_CANARY,),
    ),
    Fault(
        "secrets/programs-get-them",
        "look_up",
        "env=few(os.environ), ",
        "env=os.environ, ",
        (f"{_ENVIRONMENTS}programs_of_the_service_get_no_key",),
    ),
    Fault(
        "secrets/a-command-gets-all-of-them",
        "put_in",
        "if name not in named}",
        "if name}",
        (f"{_REFERENCES}a_command_gets_the_keys_that_it_names",),
    ),
    Fault(
        "secrets/a-variable-is-a-command",
        "_Reader._scalar",
        'kind, _, rest = value.partition(":")',
        'kind, _, rest = str(self._with_variables(value, path, line)).partition(":")',
        (f"{_REFERENCES}a_variable_that_begins_as_one_is_none",),
    ),
    Fault(
        "secrets/what-a-command-began-goes-on",
        "_run",
        "os.killpg(running.pid, signal.SIGKILL)",
        "running.kill()",
        (f"{_REFERENCES}a_command_that_takes_too_long_is_ended_with_what_it_began",),
    ),
    Fault(
        "secrets/files-of-values-in-reach",
        "examine",
        "files=(*source.files, *referred.files), ",
        "",
        (f"{_REFERENCES}values_stand_in_files_and_behind_commands",),
    ),
)
