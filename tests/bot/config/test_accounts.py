"""Further accounts of a platform: what they take from the block above, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from bot.config.errors import ConfigError
from bot.config.load import load
from bot.config.mcp import Server
from bot.config.model import Config
from bot.config.secrets import secrets
from bot.config.shown import value_at
from bot.config.web import Web
from tests.bot.config.test_load import TOKEN, mistakes, read


def telegram(tmp_path: Path, text: str) -> dict[str, object]:
    """What each account of that configuration is, by its name."""
    return dict(read(tmp_path, f"channels: {{telegram: {text}}}").channels.sections()["telegram"].bots())


def test_what_an_account_does_not_say_is_as_above(tmp_path: Path) -> None:
    plain = f"token: '{TOKEN}', base_url: 'http://a/bot', prompt: Hi, dm: {{allow_from: [1]}}"
    own = "token: '2:x', dm: {policy: open}"
    found = telegram(tmp_path, f"{{{plain}, accounts: {{work: {{{own}}}, home: {{token: '3:x', enabled: false}}}}}}")
    assert list(found) == ["", "work", "home"]
    shown = {name: account.model_dump(include=KEYS) for name, account in found.items()}  # type: ignore[attr-defined]
    above = {"enabled": True, "base_url": "http://a/bot", "prompt": "Hi"}
    listed = {"policy": "pairing", "allow_from": ("1",)}
    assert shown == {
        "": {**above, "dm": listed},
        "work": {**above, "dm": {"policy": "open", "allow_from": ()}},
        "home": {**above, "enabled": False, "dm": listed},
    }


KEYS = {"enabled", "base_url", "prompt", "dm"}


def test_accounts_alone_enable_the_platform(tmp_path: Path) -> None:
    config = read(tmp_path, "channels: {telegram: {accounts: {work: {token: '2:x'}}}}")
    section = config.channels.sections()["telegram"]
    assert section.enabled
    assert list(section.bots()) == ["work"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{accounts: {work: {}}}", "accounts.work.token: missing; Telegram is enabled and needs the token from "),
        (
            "{token: '1:x', accounts: {work: {token: '1:x'}}}",
            "accounts.work.token: the same as the token above; each account is a bot of its own",
        ),
        (
            "{accounts: {a: {token: '1:x'}, b: {token: '1:x'}}}",
            "accounts.b.token: the same as a; each account is a bot of its own",
        ),
        ("{accounts: {group: {token: '1:x'}}}", "accounts.group: `group` cannot be the name of an account; allowed: "),
        ("{accounts: {'a:b': {token: '1:x'}}}", "accounts.a:b: `a:b` cannot be the name of an account; allowed: "),
        ("{accounts: {a: {token: '1:x', promt: x}}}", "accounts.a.promt: unknown key; nearest known name is `prompt`"),
        ("{accounts: {a: {token: '1/x'}}}", "accounts.a.token: found a hidden value; allowed: the token from "),
        ("{accounts: {a: {token: '1:x', dm: {allow_from: [bob]}}}}", "accounts.a.dm.allow_from[0]: found `bob`; "),
        (
            "{accounts: {a: {token: '1:x', actions: {dance: false}}}}",
            "accounts.a.actions.dance: `dance` is no action; allowed: ",
        ),
        (
            "{token: '1:x', dm: {allow_from: [bob]}, accounts: {a: {token: '2:x'}}}",
            "dm.allow_from[0]: found `bob`; allowed: ",
        ),
        ("{accounts: {a: {token: '${NONE}'}}}", "accounts.a.token: the environment variable NONE is not set"),
        ("{accounts: [a]}", "accounts: found a list; allowed: a mapping"),
    ],
)
def test_one_line_each(tmp_path: Path, text: str, line: str) -> None:
    (found,) = mistakes(tmp_path, f"channels: {{telegram: {text}}}")
    assert found.startswith(f"config.yaml:1: channels.telegram.{line}")


@pytest.mark.parametrize(
    ("who", "allowed"),
    [
        ("telegram:ada", "telegram:<id> with a Telegram user id, which is a whole number (names can change hands)"),
        ("telegram:-5", "telegram:<id> with a Telegram user id, which is a whole number (names can change hands)"),
        (
            "discord:ada",
            "discord:<id> with an id of Discord, which is a whole number (switch on Developer Mode, then Copy",
        ),
        ("slack:ada", "slack:<id> with a Slack member ID, such as U0AB12CD (copied from the person's profile)"),
        ("telegram:*", "telegram:<id> with a Telegram user id"),
        ("ada", "<platform>:<id> such as telegram:12345"),
    ],
)
def test_names_are_nobody(tmp_path: Path, who: str, allowed: str) -> None:
    for key, text in (
        ("owners[0]", f"owners: ['{who}']"),
        ("approvals.approvers[0]", f"approvals: {{approvers: ['{who}']}}"),
        ("sessions.identity_links.ada[0]", f"sessions: {{identity_links: {{ada: ['{who}']}}}}"),
    ):
        (found,) = mistakes(tmp_path, text)
        assert found.startswith(f"config.yaml:1: {key}: found `{who}`; allowed: {allowed}"), found
    known = ("telegram:1", "discord:22", "slack:U0AB12", "http:ada")
    assert read(tmp_path, f"owners: {list(known)}").owners == known


def test_several_slips_are_all_told_once(tmp_path: Path) -> None:
    text = """\
channels:
  telegram:
    enabled: true
    streaming: {min_chars: 100, max_chars: 90}
    accounts:
      a: {token: "1:x", streaming: {max_chars: 100}}
      b: {token: "1:x"}
      c: {token: "2:x", dm: {policy: opn}}
owners: [telegram:1]
sessions: {identity_links: {ada: [telegram:1], bob: [telegram:1, telegram:2], eve: [telegram:3, telegram:1]}}
agent: {model: shop/x}
providers: {shop: {}, a/b: {}}
"""
    assert [line.split(": ")[:2] for line in mistakes(tmp_path, text)] == [
        ["config.yaml:4", "channels.telegram.streaming.min_chars"],
        ["config.yaml:6", "channels.telegram.accounts.a.streaming.min_chars"],
        ["config.yaml:8", "channels.telegram.accounts.c.dm.policy"],
        ["config.yaml:10", "sessions.identity_links.bob[0]"],
        ["config.yaml:12", "providers.shop.api"],
    ]


# The section `web`: what is refused, and what becomes of it.


def mistakes_in(folder: Path, text: str) -> list[str]:
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
    (found,) = mistakes_in(tmp_path, f"web:\n  {text}")
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


# The section `mcp`, and the secrets in it.


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
