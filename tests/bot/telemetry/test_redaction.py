"""Log lines: every secret of the configuration and the environment is masked, wherever it stands in one."""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bot.config.model import Config
from bot.config.secrets import secrets
from bot.telemetry.logs import set_up
from bot.telemetry.redact import MASK, Redactor

SECRETS = {
    "telegram": "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "second account": "654321:BBGdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "discord": "MTIzNDU2.AbCdEf.0123456789abcdef",
    "slack bot": "xoxb-1-2-0123456789abcdef",
    "slack app": "xapp-1-2-0123456789abcdef",
    "slack signature": "0123456789abcdef0123456789abcdef",
    "gateway": "a-long-token-of-the-gateway",
    "collector": "a-key-of-the-collector-0123456789",
    "search": "a-key-of-the-search-0123456789",
    "embeddings": "a-key-of-the-embeddings-0123456789",
    "transcription": "a-key-of-the-transcription-0123456789",
    "speech": "a-key-of-the-speech-0123456789",
    "MCP header": "a-token-of-a-server-0123456789",
    "MCP variable": "a-key-of-a-program-0123456789",
    "first key": "sk-first-0123456789",
    "second key": "sk-second-0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-0123456789",
    "OPENAI_API_KEY": "sk-openai-0123456789",
}


def configured() -> Config:
    """A configuration with a value for each secret there is."""
    config = Config.model_validate(
        {
            "channels": {
                "telegram": {"token": SECRETS["telegram"], "accounts": {"b": {"token": SECRETS["second account"]}}},
                "discord": {"token": SECRETS["discord"]},
                "slack": {
                    "bot_token": SECRETS["slack bot"],
                    "app_token": SECRETS["slack app"],
                    "signing_secret": SECRETS["slack signature"],
                },
            },
            "gateway": {"token": SECRETS["gateway"]},
            "web": {"search": {"provider": "brave", "api_key": SECRETS["search"]}},
            "telemetry": {"otlp": {"endpoint": "http://localhost:4318", "headers": {"key": SECRETS["collector"]}}},
            "memory": {
                "embeddings": {"base_url": "http://localhost:1/v1", "model": "m", "api_key": SECRETS["embeddings"]}
            },
            "transcription": {"base_url": "http://localhost:1/v1", "api_key": SECRETS["transcription"]},
            "speech": {"base_url": "http://localhost:1/v1", "api_key": SECRETS["speech"]},
            "mcp": {
                "servers": {
                    "far": {"url": "http://localhost:1/mcp", "headers": {"Authorization": SECRETS["MCP header"]}},
                    "near": {"command": "server", "env": {"API_KEY": SECRETS["MCP variable"]}},
                }
            },
            "providers": {
                "one": {"api": "openai-chat", "api_keys": [SECRETS["first key"], SECRETS["second key"]]},
            },
        }
    )
    kinds = json.dumps(Config.model_json_schema()).count('"writeOnly": true')
    assert kinds == 19, "a new secret must be added to this test"
    return config


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file to which everything is logged, as by a service with all secrets."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, SECRETS[name])
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: found.level for name in (*root.manager.loggerDict,) if (found := logging.getLogger(name))}
    set_up(Redactor(secrets(configured(), os.environ)), tmp_path / "hark.log")
    yield tmp_path / "hark.log"
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    structlog.reset_defaults()


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_is_in_a_log_line(lines: Path, name: str) -> None:
    secret = SECRETS[name]
    log = structlog.get_logger("service")
    log.warning(f"refused: {secret}", url=f"https://example.org/bot{secret}/x", nested={"key": [secret]})
    logging.getLogger("a.library").warning("sent %s", secret)
    try:
        raise ValueError(f"the key {secret} is wrong")
    except ValueError:
        log.exception("failed")
    written = lines.read_text()
    assert secret not in written
    assert written.count(MASK) >= 5
    assert "failed" in written


def test_a_secret_within_another_leaves_nothing_of_either() -> None:
    redactor = Redactor(["abcdef", "abcdefgh", "12345"])
    assert redactor.clean("abcdefgh abcdef 12345") == f"{MASK} {MASK} 12345", "five characters are no secret"


def test_a_secret_that_ends_as_one_begins_is_not_parted() -> None:
    """What may be the beginning of the next must not be taken from the end of one that is there."""
    redactor = Redactor(["abcd1234abcd", "tok-9999-t"])
    for text in ("x abcd1234abcd", "x tok-9999-t"):
        assert (redactor.withheld(text), redactor.withheld(text[:-1])) == (0, len(text) - 3)
