"""The command line of the configuration, called as people call it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bot.store.database import migrations
from tests import forked
from tests.forked import ENVIRON, ROOT, Done


def hark(folder: Path, *arguments: str, **environ: str) -> Done:
    return forked.hark(folder, *arguments, environ={**ENVIRON, **environ})


def test_help_imports_typer_and_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom bot.__main__ import main\nsys.argv = ['hark', '--help']\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0\n"
        "print('IMPORTED', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    usage, _, imported = done.stdout.partition("IMPORTED ")
    heavy = "pydantic pydantic_core rich structlog starlette uvicorn anthropic openai telegram aiosqlite ruamel httpx2"
    assert "Usage: hark" in usage
    for command in ("run", "chat", "agent", "status", "config"):
        assert f"\n  {command} " in usage
    assert set(imported.split()) & set(heavy.split()) == set()
    assert "typer" in imported.split()


def test_check_says_that_all_is_well(tmp_path: Path) -> None:
    done = hark(tmp_path, "config", "check")
    assert (done.code, done.out) == (0, "no configuration file: the defaults apply\n")
    (tmp_path / "config.yaml").write_text("agent: {max_steps: 3}")
    done = hark(tmp_path, "config", "check")
    assert (done.code, done.out) == (0, "config.yaml: no mistakes\n")


@pytest.mark.parametrize(
    ("rest", "warned"),
    [
        ("channels.telegram.dm: {policy: allowlist}\n", True),
        ("", False),
        ("channels.telegram.dm: {policy: open}\n", False),
        ("channels.telegram.dm: {allow_from: [1]}\n", False),
    ],
)
def test_a_channel_that_would_answer_nobody_is_a_warning(tmp_path: Path, rest: str, warned: bool) -> None:
    direct = rest.partition("dm: ")[2] or "{}"
    owners = rest if rest.startswith("owners") else ""
    (tmp_path / "config.yaml").write_text(f"channels: {{telegram: {{token: '1:x', dm: {direct}}}}}\n{owners}")
    done = hark(tmp_path, "config", "check")
    assert (done.code, done.error) == (0, "")
    assert ("warning: channels.telegram.dm.allow_from is empty" in done.out) is warned


@pytest.mark.parametrize("command", [["config", "check"], ["config", "get", "agent.name"]])
def test_mistakes_are_lines_and_the_exit_code_is_2(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "config.yaml").write_text("agnt: {}\ngateway: {port: x}\n")
    done = hark(tmp_path, *command)
    assert (done.code, done.out) == (2, "")
    assert done.error.splitlines() == [
        "config.yaml:1: agnt: unknown key; nearest known name is `agent`",
        "config.yaml:2: gateway.port: found `x`; allowed: a valid integer",
    ]


@pytest.mark.parametrize("early", [True, False])
def test_the_file_is_named_before_or_after_the_command(tmp_path: Path, early: bool) -> None:
    (tmp_path / "other.yaml").write_text("agent: {name: Ada}")
    named, command = ["--config", "other.yaml"], ["config", "get", "agent.name"]
    done = hark(tmp_path, *(named + command if early else command + named))
    assert done.out == "Ada\n"
    assert hark(tmp_path, *command, HARK_CONFIG="other.yaml").out == "Ada\n"


def test_get(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "gateway: {token: sesame-0123456789}\n"
        "providers: {openai: {api_keys: [sk-1], models: {gpt-5.1: {max_output: 7}}}}"
    )
    everything = hark(tmp_path, "config", "get").out
    assert "sesame" not in everything
    assert "sk-1" not in everything
    assert json.loads(everything)["gateway"]["port"] == 8420
    assert hark(tmp_path, "config", "get", "providers.openai.models.gpt-5.1.max_output").out == "7\n"
    assert hark(tmp_path, "config", "get", "workspace").out == f"{tmp_path / 'workspace'}\n"
    done = hark(tmp_path, "config", "get", "gateway.prt")
    assert (done.code, done.out) == (2, "")
    assert done.error == "hark config get: gateway.prt: unknown key; nearest known name is `port`\n"


def test_get_shows_no_secret_inside_urls_or_parameters(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "providers:\n  proxy:\n    api: openai-chat\n"
        "    base_url: https://ada:pass%40word@host.example:8443/v1/tok3n-tok3n-tok3n/x?key=q1&v=q2&q3#f1\n"
        "    models: {m: {params: {temperature: 0.5, api_key: p1p1}}}\n"
        "channels: {telegram: {base_url: 'http://host.example/bot'}}\n"
    )
    found = json.loads(hark(tmp_path, "config", "get", "providers.proxy").out)
    stars = "*" * 10
    assert found["base_url"] == f"https://{stars}@host.example:8443/v1/{stars}/x?key={stars}&v={stars}&{stars}#{stars}"
    assert found["models"]["m"]["params"] == {"temperature": 0.5, "api_key": stars}
    assert hark(tmp_path, "config", "get", "channels.telegram.base_url").out == "http://host.example/bot\n"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("tools:\n  exec: {security: full}\n", "config.yaml:2: tools.exec.security: `full` needs gateway.token"),
        ("agent:\n  model: openai/x\n", "config.yaml:2: agent.model: `openai/x` needs a key"),
        ("gateway: {token: short}\n", "config.yaml:1: gateway.token: found a hidden value"),
        ("gateway: {host: 0.0.0.0}\n", "config.yaml:1: gateway.host: `0.0.0.0` can be reached"),
        ("tools: {deny: [exce]}\n", "config.yaml:1: tools.deny[0]: `exce` is no tool"),
    ],
)
def test_check_says_what_run_says(tmp_path: Path, text: str, mistake: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    checked, started = hark(tmp_path, "config", "check"), hark(tmp_path, "run")
    assert checked.error.startswith(mistake)
    assert (checked.code, checked.error) == (started.code, started.error) == (2, checked.error)
    assert not (tmp_path / "state").exists()


def test_what_only_a_service_needs_keeps_nobody_else_from_asking(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("agent: {model: openai/x}\ntools: {exec: {security: full}}\n")
    assert hark(tmp_path, "config", "get", "agent.model").out == "openai/x\n"


def test_schema_is_one(tmp_path: Path) -> None:
    schema = json.loads(hark(tmp_path, "config", "schema").out)
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) >= {"agent", "owners", "providers", "channels", "gateway", "state"}
    assert "break" in schema["$defs"]["Streaming"]["properties"]


def test_usage_mistakes_are_2(tmp_path: Path) -> None:
    assert hark(tmp_path, "agent").code == 2
    assert hark(tmp_path, "nonsense").code == 2
    assert hark(tmp_path, "agent", "-m", "x", "--timeout", "soon").code == 2


def test_the_version_names_commit_and_schema(tmp_path: Path) -> None:
    found = re.fullmatch(r"hark 0\.\S+ \((?:commit (\S+), )?schema (\d+)\)\n", hark(tmp_path, "--version").out)
    assert found is not None
    assert int(found[2]) == len(migrations())
    git = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    assert (found[1] or "").removesuffix("-dirty") == git[: len((found[1] or "").removesuffix("-dirty"))]
    assert bool(found[1]) is (ROOT / ".git").exists()
