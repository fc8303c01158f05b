"""The section `mcp`, and the secrets in it."""

from pathlib import Path

import pytest

from bot.config.mcp import Server
from bot.config.model import Config
from bot.config.shown import value_at
from tests.bot.config.test_load import mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{s: {}}", "either `command` or `url`"),
        ("{s: {command: a, url: 'http://a'}}", "either `command` or `url`"),
        ("{s: {url: 'http://a', env: {A: b}}}", "`args` and `env` belong to a `command`"),
        ("{s: {command: a, headers: {A: b}}}", "`headers` belong to a `url`"),
        ("{s: {command: a, env: {'A=': b}}}", "cannot have this name or value"),
        ("{memory: {command: a}}", "the names of Hark's own"),
        ("{'a b': {command: a}}", "a name of letters"),
    ],
)
def test_what_is_no_server(tmp_path: Path, text: str, said: str) -> None:
    (mistake,) = mistakes(tmp_path, f"mcp: {{servers: {text}}}")
    assert said in mistake


def test_secrets_are_known_and_words_are_not() -> None:
    server = Server.model_validate(
        {
            "command": "x",
            "args": [
                "-y",
                "server.py",
                "--token",
                "first-one",
                "--api-key=second-one",
                "abcdefgh12345678",
                "--verbose",
            ],
            "env": {
                "GITHUB_PAT": "third-one",
                "LOG_LEVEL": "production",
                "HOME_OF": "/srv/papers2",
                "DB": "p://u:pw9@h",
            },
        }
    )
    assert {*server.secrets()} == {"first-one", "second-one", "abcdefgh12345678", "third-one", "pw9"}
    over_http = Server.model_validate(
        {"url": "http://u:pw@h/x", "headers": {"Authorization": "Bearer tok-en", "A": "b"}}
    )
    assert {*over_http.secrets()} == {"Bearer tok-en", "tok-en", "pw"}


def test_variables_and_headers_are_not_shown() -> None:
    config = Config.model_validate({"mcp": {"servers": {"s": {"command": "x", "env": {"PLAIN": "a-word"}}}}})
    assert "a-word" not in value_at(config, "mcp")
