"""Further accounts of a platform: what they take from the block above, and what is refused."""

from pathlib import Path

import pytest

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
