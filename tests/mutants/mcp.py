"""MCP servers: what is pinned, processes, calls that go wrong, secrets."""

from tests.mutants import Fault

_SERVERS, _HTTP = "tests/bot/mcp/test_servers.py::test_", "tests/bot/mcp/test_http.py::test_"
_CHANGED = f"{_SERVERS}what_changed_is_off_until_an_owner_has_looked"
_LINE = "tests/bot/mcp/test_command_line.py::test_with"

FAULTS = (
    Fault("mcp/new-is-on", "McpServers.shows", "text if first else None", "text", (_CHANGED,)),
    Fault("mcp/first-is-off", "McpServers.shows", "text if first else None", "None", (_CHANGED,)),
    Fault(
        "mcp/changes-are-not-looked-for",
        "Server._looked",
        "await self._showed(self.name, await talk.listing())",
        "await talk.listing()",
        (f"{_SERVERS}a_listing_that_changes_while_it_is_connected_is_seen",),
    ),
    Fault(
        "mcp/what-is-off-is-called",
        "Server.call",
        "if why := self._why_off(self.name, shown):",
        "if False:",
        (_CHANGED,),
    ),
    Fault(
        "mcp/hints-are-not-pinned",
        "_shown",
        "schema, more)",
        "schema)",
        (f"{_SERVERS}a_listing_that_changes_while_it_is_connected_is_seen",),
    ),
    Fault(
        "mcp/a-prefix-changes",
        "Servers.tools",
        "there = self._of_transcripts.setdefault(run.transcript_id, self.offered)",
        "there = self.offered",
        (_CHANGED,),
    ),
    Fault(
        "mcp/nobody-hears-of-changes",
        "connected",
        "isinstance(message, types.ToolListChangedNotification)",
        "False",
        (f"{_SERVERS}a_server_that_says_it_has_changed_is_looked_at",),
    ),
    Fault(
        "mcp/looks-for-ever",
        "Server._watch",
        "await asyncio.sleep(_AGAIN_SECONDS)",
        "pass",
        (f"{_SERVERS}a_server_that_says_it_has_changed_is_looked_at",),
    ),
    Fault(
        "mcp/broken-schemas",
        "Talk._is_sound",
        "return not why",
        "return True",
        (f"{_SERVERS}what_providers_would_refuse_is_not_offered",),
    ),
    Fault(
        "mcp/schemas-that-providers-refuse",
        "_for_models",
        "if not found.keys() & _NOT_AT_THE_TOP:",
        "if True:",
        (f"{_SERVERS}what_providers_would_refuse_is_not_offered",),
    ),
    Fault(
        "mcp/a-lost-session-costs-a-call",
        "Server._looked",
        "return await self.connect()",
        "raise",
        (f"{_HTTP}a_server_over_http_is_called",),
    ),
    Fault("mcp/off-is-offered", "Permissions._decided", "elif tool.off:", "elif False:", (_CHANGED,)),
    Fault("mcp/anybody-accepts", "McpRoutes.accept", "only_owners", "str.__add__", (f"{_LINE}_a_service",)),
    Fault(
        "mcp/a-crash-leaves-it",
        "Servers.serve",
        "not await asyncio.to_thread(end_leftover, one.pid, one.started)",
        "False",
        (f"{_SERVERS}a_process_that_a_crash_left_is_ended_before_another_starts",),
    ),
    Fault(
        "mcp/no-leash",
        "settings_of",
        "leashed=True",
        "leashed=False",
        (f"{_SERVERS}a_process_of_a_server_is_leashed",),
    ),
    Fault(
        "mcp/never-again",
        "Server.connect",
        "self._keeper is None or self._keeper.done()",
        "self._keeper is None",
        (f"{_SERVERS}a_server_that_is_gone_costs_one_error_and_comes_back",),
    ),
    Fault(
        "mcp/no-pause",
        "Server._keep",
        "self._not_before, self._why = self._monotonic() + pause,",
        "self._not_before, self._why = 0,",
        (f"{_SERVERS}a_program_that_cannot_be_started_says_so_without_its_secrets",),
    ),
    Fault(
        "mcp/no-sign-of-life",
        "Server._check",
        "self._checking is None and",
        "False and",
        (f"{_SERVERS}a_server_that_hangs_is_given_up_within_the_limit",),
    ),
    Fault(
        "mcp/a-cancelled-call-is-not-told",
        "Server.call",
        "task.cancel()",
        "pass",
        (f"{_SERVERS}stop_ends_a_call_at_once_and_the_server_is_told",),
    ),
    Fault(
        "mcp/all-variables",
        "settings_of",
        "scrubbed(os.environ)",
        "dict(os.environ)",
        (f"{_SERVERS}a_server_has_no_secret_of_the_service",),
    ),
    Fault(
        "mcp/inside-a-freeze",
        "RemoteTool.reaches_out",
        "return True",
        "return False",
        (f"{_SERVERS}a_freeze_of_the_network_holds_calls",),
    ),
    Fault(
        "mcp/calls-only-look",
        "RemoteTool.sink",
        'return "look" if self._looks or lists else "network"',
        'return "look"',
        (f"{_SERVERS}untrusted_text_before_a_call_asks_a_person_unless_the_operator_says_that_it_looks",),
    ),
    Fault(
        "mcp/tokens-for-all",
        "Tokens._write",
        "0o600",
        "0o644",
        (f"{_HTTP}a_login_is_kept_for_this_user_alone_and_renewed",),
    ),
    Fault(
        "mcp/renewal-forgotten",
        "_Provider._initialize",
        "self.context.token_expiry_time, self.context.oauth_metadata = kept.until, kept.metadata",
        "del kept",
        (f"{_HTTP}a_login_is_kept_for_this_user_alone_and_renewed",),
    ),
)
