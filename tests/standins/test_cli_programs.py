"""The stand-ins refuse what the programs refuse."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.standins.cli_programs import CliProgram

_STREAM = ("--print", "--output-format", "stream-json")


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("claude", ("--print", "--no-such-option"), "unrecognized arguments: --no-such-option"),
        ("claude", _STREAM, "requires --verbose"),
        ("claude", ("--print", "--include-partial-messages"), "requires --print and --output-format=stream-json"),
        ("claude", (*_STREAM, "--verbose", "--fork-session"), "can only be used with --resume"),
        ("claude", (*_STREAM, "--verbose", "--effort", "most"), "invalid choice: 'most'"),
        ("claude", (*_STREAM, "--verbose", "--resume", "gone"), "No conversation found with session ID: gone"),
        ("codex", ("--json", "-"), "unrecognized subcommand"),
        ("codex", ("exec", "--tools", "", "-"), "unrecognized arguments: --tools"),
        ("codex", ("exec", "--sandbox", "none", "-"), "invalid choice: 'none'"),
        ("codex", ("exec", "--json", "resume"), "resume takes a session and a prompt"),
        ("gemini", ("--effort", "high"), "unrecognized arguments: --effort"),
        ("gemini", ("--output-format", "xml"), "invalid choice: 'xml'"),
        ("gemini", ("--approval-mode", "never"), "invalid choice: 'never'"),
    ],
)
def test_what_it_does_not_know_is_refused(tmp_path: Path, name: Any, words: tuple[str, ...], said: str) -> None:
    program = CliProgram(tmp_path, name)
    done = called(program, *words)
    assert done.returncode != 0
    assert said in done.stderr


def test_without_being_told_it_has_its_tools(tmp_path: Path) -> None:
    done = called(CliProgram(tmp_path, "claude"), *_STREAM, "--verbose")
    assert '"tools": ["Bash", "Read"]' in done.stdout


def called(program: CliProgram, *words: str) -> "subprocess.CompletedProcess[str]":
    homes = dict.fromkeys(("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"), str(program.home))
    return subprocess.run(
        [str(program.file), *words], input="hi", env=os.environ | homes, capture_output=True, text=True, timeout=30
    )
