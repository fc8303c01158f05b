"""The section `web`: what is refused, and what becomes of it."""

from pathlib import Path
from typing import Any

import pytest

from bot.config.errors import ConfigError
from bot.config.load import load
from bot.config.model import Config
from bot.config.secrets import secrets
from bot.config.web import Web


def mistakes(folder: Path, text: str) -> list[str]:
    (folder / "config.yaml").write_text(text)
    try:
        load(None, {}, folder)
    except ConfigError as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("fetch: {allow_private: [nas.lan]}", "found `nas.lan`; allowed: host:port, such as nas.lan:80"),
        ("fetch: {allow_private: ['http://nas.lan:80']}", "allowed: host:port"),
        ("fetch: {allow_private: ['nas.lan:80/x']}", "allowed: host:port"),
        ("fetch: {allow_private: ['nas.lan:0']}", "allowed: a port of 1 to 65535"),
        ("fetch: {allow_private: ['nas.lan:70000']}", "allowed: a port of 1 to 65535"),
        ("fetch: {allow_private: ['*:80']}", "allowed: host:port"),
        ("fetch: {allow_private: ['10.0.0.0/8:80']}", "allowed: host:port"),
        ("search: {provider: google}", "allowed: brave, searxng, duckduckgo"),
        ("search: {provider: brave}", "brave needs web.search.api_key"),
        ("search: {provider: brave, api_key: ''}", "brave needs web.search.api_key"),
        ("search: {provider: searxng}", "searxng needs web.search.base_url"),
        ("search: {provider: searxng, base_url: nas.lan}", "a URL that begins with http:// or https://"),
        ("search: {key: x}", "unknown key"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, mistake: str) -> None:
    (found,) = mistakes(tmp_path, f"web:\n  {text}")
    assert mistake in found


@pytest.mark.parametrize(
    "web",
    [
        {"fetch": {"allow_private": ["NAS.lan:8080", "192.168.1.5:80", "[fd00::1]:443", "my_host:1"], "fake_ip": True}},
        {"search": {"provider": "brave", "api_key": "brave-key-1"}},
        {"search": {"provider": "searxng", "base_url": "http://10.0.0.1:8888/"}},
        {},
    ],
)
def test_what_is_allowed(web: dict[str, Any]) -> None:
    assert Web.model_validate(web)


def test_the_key_is_a_secret() -> None:
    config = Config.model_validate({"web": {"search": {"provider": "brave", "api_key": "brave-key-1"}}})
    assert "brave-key-1" in secrets(config, {})
    assert "brave-key-1" not in repr(config)
