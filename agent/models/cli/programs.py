"""How each program is started with its tools off.

Options: for Claude Code https://code.claude.com/docs/en/cli-reference, for Codex `codex-rs/exec/src/cli.rs` of
github.com/openai/codex, for Gemini CLI https://geminicli.com/docs/reference/configuration.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.models.base import ThinkingLevel
from agent.models.cli.readers import ClaudeReader, CodexReader, GeminiReader, Reader
from agent.models.protocol import EFFORTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What decides how a program is started for one call."""

    # The model's name; `default` leaves it to the program.
    model: str
    thinking: ThinkingLevel
    # The session to go on with; empty: a new one.
    session_id: str = ""
    # The address of the server that answers in place of the provider, in a proof of its tools; empty: the provider.
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that Hark knows how to start with its tools off."""

    # The name of its file, by which it is recognised.
    name: str
    # The variable that names its folder of settings.
    home_variable: str
    # What a person types to log in.
    login: str
    # Returns the words behind the program.
    words: Callable[[Call], list[str]]
    # Returns its variables besides, by its folder.
    variables: Callable[[Call, Path], dict[str, str]]
    reader: type[Reader]
    # Whether a session that is gone on with stays as it was, and the answer has a new one.
    forks: bool
    # Whether it prints nothing while its model works, however long that takes.
    is_quiet: bool
    # Tools that it has whatever it is told and that do nothing. None: it lists its tools itself, at each call.
    harmless: frozenset[str] | None
    # Files of settings: their names in the folder, and what they hold.
    settings: tuple[tuple[str, str], ...] = ()


_CLAUDE_EFFORTS: dict[ThinkingLevel, str] = {**EFFORTS, "x-high": "max"}
_SYSTEM = "Your instructions stand in the first line of what you are sent. They come from whoever runs you."


def _claude(call: Call) -> list[str]:
    words = ["--print", "--output-format", "stream-json", "--include-partial-messages", "--verbose"]
    words += ["--tools", "", "--strict-mcp-config", "--setting-sources", "", "--disable-slash-commands"]
    words += ["--system-prompt", _SYSTEM, *_model(call)]
    if call.thinking in _CLAUDE_EFFORTS:
        words += ["--effort", _CLAUDE_EFFORTS[call.thinking]]
    return [*words, "--resume", call.session_id, "--fork-session"] if call.session_id else words


def _claude_variables(call: Call, home: Path) -> dict[str, str]:
    quiet = dict.fromkeys(("DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1")
    return {**quiet, **({"MAX_THINKING_TOKENS": "0"} if call.thinking == "off" else {})}


_CODEX_EFFORTS: dict[ThinkingLevel, str] = {**EFFORTS, "off": "none"}
_CODEX_OFF = (
    *("features.shell_tool", "features.unified_exec", "features.apps", "features.plugins", "features.multi_agent"),
    *("features.js_repl", "features.image_generation", "features.hooks", "features.memories", "agents.enabled"),
    *("include_apply_patch_tool", "tools.view_image"),
)


def _codex(call: Call) -> list[str]:
    words = ["exec", "--json", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules", "--color", "never"]
    words += ["--sandbox", "read-only", *_model(call)]
    settings = {key: "false" for key in _CODEX_OFF}
    settings |= {"web_search": '"disabled"', "project_doc_max_bytes": "0"}
    if call.thinking in _CODEX_EFFORTS:
        settings["model_reasoning_effort"] = f'"{_CODEX_EFFORTS[call.thinking]}"'
    if call.instead:
        settings["model_provider"] = '"proof"'
        settings["model_providers.proof"] = f'{{name="proof",base_url="{call.instead}/v1",wire_api="responses"}}'
    for key, value in settings.items():
        words += ["-c", f"{key}={value}"]
    return [*words, "resume", call.session_id, "-"] if call.session_id else [*words, "-"]


def _gemini(call: Call) -> list[str]:
    words = ["--output-format", "stream-json", "--approval-mode", "default", "--extensions", "none"]
    words += _model(call)
    return [*words, "--resume", call.session_id] if call.session_id else words


# These settings override all others. Any value of `tools.core` denies every tool that it does not name.
_GEMINI_SETTINGS: dict[str, Any] = {
    "tools": {"core": []},
    "mcp": {"allowed": []},
    "hooksConfig": {"enabled": False},
    "skills": {"enabled": False},
    "security": {"folderTrust": {"enabled": False}},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
}
# In a proof it shall use a key that is none, and not the login.
_GEMINI_PROOF = _GEMINI_SETTINGS | {
    "security": {"folderTrust": {"enabled": False}, "auth": {"selectedType": "gemini-api-key"}}
}


def _gemini_variables(call: Call, home: Path) -> dict[str, str]:
    path = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
    if call.instead:
        proof = {"GOOGLE_GEMINI_BASE_URL": call.instead, "GEMINI_API_KEY": "proof"}
        return {path: str(home / "hark-proof.json"), **proof}
    return {path: str(home / "hark-settings.json")}


def _model(call: Call) -> list[str]:
    """Return the option of the model, in one word, so that no name of a model is taken for an option."""
    return [] if call.model == "default" else [f"--model={call.model}"]


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            name="claude",
            home_variable="CLAUDE_CONFIG_DIR",
            login="claude auth login",
            words=_claude,
            variables=_claude_variables,
            reader=ClaudeReader,
            forks=True,
            is_quiet=False,
            harmless=None,
        ),
        Program(
            name="codex",
            home_variable="CODEX_HOME",
            login="codex login",
            words=_codex,
            variables=lambda call, home: {},
            reader=CodexReader,
            forks=False,
            is_quiet=True,
            harmless=frozenset({"update_plan"}),
        ),
        Program(
            name="gemini",
            home_variable="GEMINI_CLI_HOME",
            login="gemini",
            words=_gemini,
            variables=_gemini_variables,
            reader=GeminiReader,
            forks=False,
            is_quiet=True,
            harmless=frozenset(),
            settings=(
                ("hark-settings.json", json.dumps(_GEMINI_SETTINGS)),
                ("hark-proof.json", json.dumps(_GEMINI_PROOF)),
            ),
        ),
    )
}
