"""Secrets: in logs, in programs, at models."""

from tests.mutants import Fault, code, fault

_SERVERS = "tests/bot/mcp/test_servers.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "secrets/log-lines-not-cleaned",
        "set_up",
        code("A.clean(str(B))", "str(B)"),
        "tests/bot/telemetry/test_redaction.py::test_no_secret_is_in_a_log_line",
    ),
    fault(
        "secrets/a-model-says-one",
        "MaskedClient.stream",
        code("masked(A.message, self._redactor)", "A.message"),
        "tests/bot/telemetry/test_shapes.py::test_a_model_is_neither_told_nor_says_one",
        "tests/bot/telemetry/test_canary.py::test_no_key_is_in_anything_that_it_left",
    ),
    fault(
        "secrets/an-error-names-one",
        "MaskedClient.stream",
        code("A(B.detail)", "B.detail"),
        "tests/bot/telemetry/test_shapes.py::test_an_error_of_a_model_names_none",
    ),
    fault(
        "secrets/programs-get-them",
        "look_up",
        code("few(os.environ)", "os.environ"),
        "tests/bot/test_environments.py::test_programs_of_the_service_get_no_key",
    ),
    fault(
        "secrets/a-command-gets-all-of-them",
        "put_in",
        code("name not in named", "name"),
        "tests/bot/config/test_references.py::test_a_command_gets_the_keys_that_it_names",
    ),
    fault(
        "secrets/a-variable-is-a-command",
        "_Reader._scalar",
        code("value.partition", "str(self._with_variables(value, path, line)).partition"),
        "tests/bot/config/test_references.py::test_a_variable_that_begins_as_one_is_none",
    ),
    fault(
        "secrets/what-a-command-began-goes-on",
        "_run",
        code("os.killpg(running.pid, signal.SIGKILL)", "running.kill()"),
        "tests/bot/config/test_references.py::test_a_command_that_takes_too_long_is_ended_with_what_it_began",
    ),
    fault(
        "hooks/commands-are-told-secrets",
        "as_json",
        code("clean", "str"),
        "tests/bot/hooks/test_hooks.py::test_what_leaves_the_process_has_no_secrets",
    ),
    fault(
        "programs/keys-are-passed-on",
        "CliClient._launch",
        code(
            "{'PATH': B, 'LC_ALL': 'C.UTF-8', 'TERM': 'dumb', 'NO_COLOR': '1', A: str(D.home), **C}",
            "{'PATH': B, **os.environ, 'TERM': 'dumb', 'NO_COLOR': '1', A: str(D.home), **C}",
        ),
        "tests/wire/test_cli_models.py::test_it_sees_no_key_and_nothing_but_its_own_folder",
    ),
    fault(
        "voice/secrets-for-the-program",
        "Transcriber._run",
        code("scrubbed(os.environ)", "os.environ"),
        "tests/bot/voice/test_transcription.py::test_a_program_hears_without_the_secrets_of_the_service",
    ),
    fault(
        "mcp/anybody-accepts",
        "McpRoutes.accept",
        code("only_owners", "str.__add__"),
        "tests/bot/mcp/test_command_line.py::test_with_a_service",
    ),
    fault(
        "mcp/all-variables",
        "settings_of",
        code("scrubbed", "dict"),
        f"{_SERVERS}a_server_has_no_secret_of_the_service",
    ),
    fault(
        "mcp/calls-only-look",
        "RemoteTool.sink",
        code("'look' if self._looks or A else 'network'", "'look'"),
        f"{_SERVERS}untrusted_text_before_a_call_asks_a_person_unless_the_operator_says_that_it_looks",
    ),
    fault(
        "mcp/a-lost-call-is-made-again",
        "Server.call",
        code(
            "raise self._error('has ended during the call, whose outcome is unknown.') from A",
            "return await self.call(shown, arguments, update)",
        ),
        "tests/crash/test_explorer.py::test_nothing_happens[server]",
    ),
)
