"""Extensions, and `hark mcp` as a server."""

from tests.mutants import Fault

_LOAD = "tests/bot/config/test_extensions.py::test_"
_BROKEN = f"{_LOAD}what_is_broken_is_a_sentence_and_the_service_starts"
_MCP = "tests/bot/cli/test_mcp_server.py::test_"

FAULTS = (
    Fault(
        "extensions/all-that-is-installed",
        "load",
        "one.group.startswith(PREFIX)",
        "one.group",
        (f"{_BROKEN}[nothing]",),
    ),
    Fault(
        "extensions/only-exceptions-are-caught",
        "load",
        "except (Exception, SystemExit) as error",
        "except Exception as error",
        (f"{_BROKEN}[leaves]",),
    ),
    Fault("extensions/takes-a-tool", "_tool", "(*NAMES, *_TAKEN)", "(*_TAKEN,)", (f"{_BROKEN}[tool-taken]",)),
    Fault(
        "extensions/takes-a-channel",
        "bot/config/extensions.py",
        "registry.FOLDERS.get(point.name, point.value) != point.value",
        "False",
        (f"{_BROKEN}[channel-taken]",),
    ),
    Fault(
        "extensions/a-guard-is-missing",
        "_stand_in",
        'loaded.hooks += (Hook(point=point, name=name, call=shut) for point in ("before_tool_call", "before_install"))',
        "pass",
        (f"{_LOAD}where_a_hook_is_broken_no_tool_is_called",),
    ),
    Fault(
        "extensions/hooks-left-out",
        "_extended",
        "(*given.hooks, *loaded.hooks)",
        "given.hooks",
        (f"{_LOAD}tools_and_hooks_in_the_service",),
    ),
    Fault(
        "extensions/effects-undeclared",
        "_guarded",
        "type(tool).sink is Tool.sink",
        "False",
        (f"{_LOAD}tools_are_named_as_their_entry_point_and_say_where_their_effect_goes",),
    ),
    Fault(
        "extensions/any-name-of-a-tool",
        "_guarded",
        'not (tool.name == prefix or tool.name.startswith(f"{prefix}_"))',
        "False",
        (f"{_LOAD}tools_are_named_as_their_entry_point_and_say_where_their_effect_goes",),
    ),
    Fault(
        "extensions/a-section-refused",
        "prepare",
        "if name not in unknown",
        "",
        (f"{_LOAD}what_only_a_broken_one_could_explain_is_passed_over",),
    ),
    Fault(
        "extensions/an-adapter-stops-the-start",
        "bot/furniture.py",
        "if name in platforms.OWN:",
        "if name:",
        (f"{_LOAD}a_broken_adapter_is_down_and_the_service_runs",),
    ),
    Fault(
        "extensions/a-start-that-fails-stops-all",
        "Account.start",
        "if self.channel.name in OWN:",
        "if self.channel.name:",
        (f"{_LOAD}an_adapter_that_cannot_start_leaves_the_others_alone",),
    ),
    Fault(
        "extensions/live-at-a-reload",
        "_merged",
        "if not hasattr(old, name):",
        "if not name:",
        (f"{_LOAD}one_that_is_named_meanwhile_needs_a_restart",),
    ),
    Fault(
        "mcp-server/sends-while-frozen",
        "SendRoutes.send",
        '("all", "network")',
        "()",
        (f"{_MCP}what_is_frozen_sends_nothing",),
    ),
    Fault(
        "mcp-server/sent-twice",
        "SendRoutes.send",
        'sentence("sent", key)',
        'sentence("sent", uuid.uuid4().hex)',
        (f"{_MCP}what_is_frozen_sends_nothing",),
    ),
    Fault(
        "mcp-server/a-signal-leaves-it",
        "serve",
        "add_signal_handler(number, os._exit, 0)",
        "remove_signal_handler(number)",
        (f"{_MCP}without_a_service_each_call_says_so_until_one_runs",),
    ),
)
