"""Programs of the command line as models: whom they answer, what they may do, and what is left of them."""

from tests.mutants import Fault

_WIRE = "tests/wire/test_cli_models.py::test_"
_SERVICE = "tests/bot/runs/test_program_models.py::test_"

FAULTS = (
    Fault(
        "programs/everybody-is-answered",
        "CliClient.stream",
        "if not request.for_owners:",
        "if False:",
        (f"{_WIRE}only_owners_are_answered", f"{_SERVICE}somebody_else_is_told_why_not"),
    ),
    Fault(
        "programs/every-turn-is-of-owners",
        "Permissions._decided",
        "by_owners = all(map(self.people.is_owner, own))",
        "by_owners = True",
        (f"{_SERVICE}somebody_else_is_told_why_not",),
    ),
    Fault(
        "programs/no-proof",
        "CliClient._prove",
        "if more := tools - self._program.harmless:",
        "if more := set():",
        (f"{_WIRE}a_program_that_offers_tools_gets_no_words",),
    ),
    Fault(
        "programs/proved-for-ever",
        "CliClient._prove",
        "if file == self._proved:",
        "if self._proved:",
        (f"{_WIRE}a_program_is_proved_once_and_again_when_its_file_changes",),
    ),
    Fault(
        "programs/listed-tools-are-believed",
        "ClaudeReader.feed",
        'if found := [*items(event.get("tools")), *items(event.get("mcp_servers"))]:',
        "if found := []:",
        (f"{_WIRE}a_program_that_offers_tools_gets_no_words",),
    ),
    Fault(
        "programs/used-tools-are-passed-over",
        "CodexReader._item",
        'if kind not in ("agent_message", "reasoning", "error", "todo_list", "plan"):',
        "if False:",
        (f"{_WIRE}a_tool_that_is_used_ends_the_program",),
    ),
    Fault(
        "programs/no-leash",
        "CliClient._launch",
        "leashed=True",
        "leashed=False",
        (f"{_WIRE}a_crash_of_the_service_ends_the_whole_tree",),
    ),
    Fault(
        "programs/keys-are-passed-on",
        "CliClient._launch",
        '"LC_ALL": "C.UTF-8",',
        "**os.environ,",
        (f"{_WIRE}it_sees_no_key_and_nothing_but_its_own_folder",),
    ),
    Fault(
        "programs/any-session-goes-on",
        "going_on",
        "if not new or session.digest != digest(request, request.messages[:index]):",
        "if not new:",
        (f"{_WIRE}a_session_that_saw_something_else_is_left",),
    ),
    Fault(
        "programs/broken-sessions-go-on",
        "CliClient._going_on",
        "self._whole.pop(prompt.session.session_id",
        "self._whole.get(prompt.session.session_id",
        (f"{_WIRE}a_call_that_broke_off_leaves_nothing_in_the_conversation",),
    ),
    Fault(
        "programs/sessions-are-not-copied",
        "_claude",
        ', "--fork-session"',
        "",
        (f"{_WIRE}a_call_that_broke_off_leaves_nothing_in_the_conversation",),
    ),
    Fault(
        "programs/limits-without-an-end",
        "failed",
        "wait = wait if wait > 0 else",
        "wait =",
        (f"{_WIRE}the_end_of_a_limit_is_known",),
    ),
)
