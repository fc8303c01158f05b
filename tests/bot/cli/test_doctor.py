"""`hark doctor` without a service: each token, key and model is tried, and only that."""

import json
from pathlib import Path

import pytest

from agent.sandbox.backends import Bubblewrap, Sandlock
from agent.sandbox.base import Confinement
from agent.sandbox.proof import choose
from bot.cli import doctor, run
from bot.config.model import Config
from tests.forked import begin
from tests.standins.cli_programs import CliProgram
from tests.standins.discord_ledger import Rule
from tests.standins.discord_server import DiscordServer
from tests.standins.ollama_server import OllamaServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.slack_ledger import Rule as SlackRule
from tests.standins.slack_server import SlackServer
from tests.standins.telegram_server import TelegramServer

TOKENS = {"telegram": "token", "discord": "token", "slack": "bot_token", "slack app": "app_token"}


async def examined(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """State and text of its lines, by what they are about."""
    done = await (await begin(folder, "doctor", "--json", piped=True)).finish()
    assert (done.code, done.error) == (1, ""), "no service runs"
    found: dict[str, list[tuple[str, str]]] = {}
    for line in json.loads(done.out):
        found.setdefault(line["about"], []).append((line["state"], line["text"]))
    return found


@pytest.mark.parametrize("wrong", [None, *TOKENS])
async def test_each_token_is_tried_at_its_platform(tmp_path: Path, wrong: str | None) -> None:
    async with TelegramServer() as telegram, DiscordServer() as discord, SlackServer() as slack:
        discord.tolerate(*[Rule.TOKEN] * (wrong == "discord"))
        slack.tolerate(*[SlackRule.BAD_TOKEN] * (wrong in ("slack", "slack app")))
        bad = {"telegram": "1:wrong", "discord": "wrong", "slack": "xoxb-wrong", "slack app": "xapp-wrong"}
        good = {
            "telegram": telegram.token,
            "discord": discord.token,
            "slack": slack.bot_token,
            "slack app": slack.app_token,
        }
        given = {name: bad[name] if name == wrong else token for name, token in good.items()}
        channels = {
            "telegram": {"token": given["telegram"], "base_url": telegram.base_url},
            "discord": {"token": given["discord"], "base_url": discord.base_url},
            "slack": {
                "bot_token": given["slack"],
                "app_token": given["slack app"],
                "base_url": slack.base_url,
                "accounts": {"off": {"bot_token": "xoxb-off", "app_token": "xapp-off", "enabled": False}},
            },
        }
        (tmp_path / "config.yaml").write_text(
            json.dumps({"channels": channels, "agent": {"model": "offline/offline"}, "gateway": {"port": 0}})
        )
        found = await examined(tmp_path)
        for name, key in TOKENS.items():
            states = {text: state for state, text in found[name.partition(" ")[0]]}
            if name != wrong:
                assert states[f"{key} is accepted"] == "ok"
            else:
                (said,) = [text for text in states if text.startswith(f"{key} was refused (")]
                assert states[said] == "wrong"
                assert "wrong" not in said
                assert "; needed is " in said
        assert "slack:off" not in found
        assert found["model"] == [("ok", "offline/offline answers")]
        assert not (tmp_path / "state" / "hark.db").exists()


async def test_each_key_and_model_is_asked_for_a_word(tmp_path: Path) -> None:
    async with OpenAIServer(keys=("k-1", "k-2"), models=("good", "other")) as model:
        models = {"good": {}, "other": {}, "gone": {}}
        provider = {"api": "openai-chat", "base_url": model.base_url, "api_keys": ["k-1", "k-wrong"], "models": models}
        (tmp_path / "config.yaml").write_text(
            json.dumps({"providers": {"mine": provider}, "agent": {"model": "mine/good"}})
        )
        found = await examined(tmp_path)
        said = {text: state for state, text in found["model"]}
        assumed = [text for state, text in found["configuration"] if state == "note" and "is assumed: a window" in text]
        assert [text.partition(" is assumed")[0] for text in assumed] == [
            "of `mine/good`",
            "of `mine/other`",
            "of `mine/gone`",
        ]
        assert said["mine/good with key 1 of 2 answers"] == "ok"
        assert said["mine/other with key 1 of 2 answers"] == "ok"
        refused = [text for text, state in said.items() if state == "wrong"]
        assert len(refused) == 4
        assert any(text.startswith("mine/good with key 2 of 2 does not answer: auth: ") for text in refused)
        assert any(text.startswith("mine/gone with key 1 of 2 does not answer: ") for text in refused)
        assert not [text for text in said if "k-wrong" in text]


async def test_a_smaller_context_than_wanted_is_said(tmp_path: Path) -> None:
    async with OllamaServer(trained=8192) as server:
        models = {"qwen3:8b": {"context_window": 9000}}
        (tmp_path / "config.yaml").write_text(
            json.dumps({"providers": {"ollama": {"base_url": server.base_url, "models": models}}})
        )
        [(state, text)] = (await examined(tmp_path))["model"]
        assert (state, "8,192 tokens instead of 9,000" in text) == ("note", True)


async def test_a_platform_that_is_not_there_is_said_without_the_token(tmp_path: Path) -> None:
    telegram = {"token": "1:secret-token", "base_url": "http://127.0.0.1:9/bot"}
    (tmp_path / "config.yaml").write_text(
        json.dumps({"channels": {"telegram": telegram}, "agent": {"model": "offline/offline"}})
    )
    ((state, text),) = (await examined(tmp_path))["telegram"]
    assert (state, text) == ("wrong", "token could not be tried: ConnectError; is there a network?")


async def test_what_keeps_it_from_starting_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("agent: {model: openai/x}\ntools: {exec: {security: full}}\n")
    found = await examined(tmp_path)
    assert [state for state, _ in found["configuration"]] == ["wrong", "wrong"]
    assert found["configuration"][1][1].startswith("agent.model: `openai/x` needs a key")
    assert "model" not in found


async def test_hooks_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("hooks: {agent_end: [{command: [./x]}]}\n")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/guard.py").write_text("import no_such\nasync def message_sending(event): pass\n")
    ((state, text),) = (await examined(tmp_path))["hooks"]
    assert state == "wrong"
    assert "guard.py cannot be used as hooks: ModuleNotFoundError: No module named 'no_such'" in text
    assert text.endswith("Until that is mended, message_sending forbids everything")


async def test_a_program_as_the_model_is_asked_for_a_word(tmp_path: Path) -> None:
    if choose("auto").sandbox is None:
        pytest.skip(choose("auto").why)
    program = CliProgram(tmp_path, "claude")
    provider = {"api": "cli", "command": [str(program.file)]}
    settings = {"agent": {"model": "claude/sonnet"}, "providers": {"claude": provider}, "gateway": {"port": 0}}
    (tmp_path / "config.yaml").write_text(json.dumps(settings | {"state": str(program.home.parents[1])}))
    assert ("ok", "claude/sonnet answers") in (await examined(tmp_path))["model"]
    program.plays(logged_in=False)
    [(state, text)] = (await examined(tmp_path))["model"]
    assert state == "wrong"
    assert f"to log in: CLAUDE_CONFIG_DIR={program.home} claude auth login" in text
    program.file.unlink()
    wrong = [text for _, text in (await examined(tmp_path))["configuration"]]
    assert f"agent.model: `{program.file}` is not installed, or not on PATH" in " ".join(wrong)


async def test_a_sandbox_that_holds_less_is_a_note_and_the_start_says_what_changed() -> None:
    smaller = Confinement(sandbox=Sandlock(), why="proved at start; bubblewrap: not installed").shown
    whole = Confinement(sandbox=Bubblewrap("/usr/bin/bwrap"), why="proved at start").shown
    config = Config.model_validate(
        {"tools": {"exec": {"security": "full"}}, "gateway": {"token": "0123456789abcdefghij"}}
    )
    for sandbox, state in ((smaller, "note"), (whole, "ok"), ("none: why", "note")):
        finding = await doctor._held(config, sandbox)
        assert (finding.state, finding.about, finding.text) == (state, "sandbox", sandbox)
        line = run._held(config, sandbox)
        assert ("they run there without a question" in line) == (sandbox != smaller)
        assert ("`apt install bubblewrap`), or add rules" in line) == (sandbox == smaller)
        assert len(line.splitlines()) == 1
    assert smaller.startswith("sandlock: proved at start; bubblewrap: not installed. It holds only commands that look.")
