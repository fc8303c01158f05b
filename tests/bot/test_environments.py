"""Keys leave the environment of everything that is started."""

import ast
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.documents import NotRead, pages_of
from agent.models.base import ModelSpec
from agent.sandbox import proof
from bot.cli import version
from bot.config import price_book
from bot.config.load import load
from bot.config.voice import Transcription
from bot.voice.endpoint import VoiceError
from bot.voice.transcription import Transcriber
from tests.scripted_model import Call
from tests.service import running

ROOT = Path(__file__).parents[2]
STARTS = {
    *(f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output")),
    *(f"asyncio.create_subprocess_{name}" for name in ("exec", "shell")),
}
PLANTED = {
    "ANTHROPIC_API_KEY": "sk-ant-canary-0123456789",
    "GITHUB_TOKEN": "ghp_canary0123456789012345678901234567",
    "INNOCENT": "canary-under-another-name",
    "DATABASE": "postgres://ada:canary-in-a-url-1234@h/d",
}


def starts() -> Iterator[tuple[str, ast.Call]]:
    """Every call in the product that starts a process."""
    for file in (
        file for folder in ("agent", "bot", "channels", "heartbeat") for file in (ROOT / folder).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTS:
                yield f"{file.relative_to(ROOT)}:{node.lineno}", node


def test_each_process_is_given_an_environment() -> None:
    found = list(starts())
    assert len(found) == 7, "a new place that starts processes must be in the test below"
    assert [where for where, call in found if not any(word.arg == "env" for word in call.keywords)] == []


@pytest.fixture
def environments(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The environment of each process that is started, while keys stand in that of this one."""
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    found: list[dict[str, str]] = []
    start = subprocess.Popen.__init__

    def noting(self: Any, *args: Any, env: Any = None, **more: Any) -> None:
        found.append(dict(os.environ if env is None else env))
        start(self, *args, env=env, **more)

    monkeypatch.setattr(subprocess.Popen, "__init__", noting)
    return found


def test_programs_of_the_service_get_no_key(environments: list[dict[str, str]], tmp_path: Path) -> None:
    version.described()
    price_book.look_up([ModelSpec(provider="openai", api="openai-chat", model="gpt-4o-environments")])
    proof._proved.cache_clear()
    proof.choose("auto")
    (tmp_path / "config.yaml").write_text("owners: ['telegram:${INNOCENT}1', 'command:env > env; echo telegram:1']")
    with pytest.raises(Exception, match="owners"):
        load(tmp_path / "config.yaml", os.environ, tmp_path)
    assert len(environments) >= 4
    assert [one for one in environments if "canary" in str(one)] == []
    assert "canary" not in (tmp_path / "env").read_text()


async def test_commands_of_the_agent_get_no_key(environments: list[dict[str, str]], tmp_path: Path) -> None:
    async with running(tmp_path, config={"tools": {"exec": {"security": "full"}}}) as hark:
        hark.model.add(Call("exec", {"command": "env"}), Call("exec", {"command": "env; true", "background": True}))
        hark.model.add("done")
        await hark.say("look")
        told = str([message for request in hark.model.requests for message in request.messages])
    assert "PATH=" in told
    assert "canary" not in told
    assert environments
    assert [one for one in environments if "canary" in str(one)] == []


async def test_programs_that_the_operator_names_and_readers_get_no_key(
    environments: list[dict[str, str]], tmp_path: Path
) -> None:
    with pytest.raises(NotRead):
        await pages_of(b"%PDF-1.7 and nothing else", 1, 100)
    with pytest.raises(VoiceError):
        await Transcriber(Transcription(command=("false", "{file}")), tmp_path).text_of(
            b"a sound", "a.ogg", "audio/ogg"
        )
    assert len(environments) == 2
    hooks = {"gateway_start": [{"command": ["sh", "-c", f"env > {tmp_path}/env; touch {tmp_path}/seen"]}]}
    async with running(tmp_path / "home", config={"hooks": hooks}) as hark:
        await hark.until(lambda: (tmp_path / "seen").exists(), "the hook")
    assert "PATH=" in (tmp_path / "env").read_text()
    assert "canary" not in (tmp_path / "env").read_text()
    assert [one for one in environments if "canary" in str(one)] == []
