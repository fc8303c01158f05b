"""Discord's section of the configuration: what is refused, and what an account is built of."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from channels.discord import settings
from channels.discord.api import Api
from channels.discord.render import bodies
from channels.discord.settings import DiscordAccount, DiscordThreads
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from tests.bot.config.test_load import mistakes, read
from tests.channels.sections import account
from tests.watch import LoopTime

IDS = "allowed: an id of Discord, which is a whole number (switch on Developer Mode, then Copy ID in a context menu)"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{enabled: true}", "token: missing; Discord is enabled and needs the bot's token from the Developer Portal"),
        ("{token: 'a b'}", "token: found a hidden value; allowed: the bot's token from the Developer Portal"),
        ("{token: x, dm: {allow_from: [bob]}}", f"dm.allow_from[0]: found `bob`; {IDS}"),
        ("{token: x, groups: {allow: {home: {}}}}", f"groups.allow.home: found `home`; {IDS}"),
        ("{token: x, groups: {allow: {1: {users: [bob]}}}}", f"groups.allow.1.users[0]: found `bob`; {IDS}"),
        ("{token: x, groups: {allow: {1: {roles: [2, '@x']}}}}", f"groups.allow.1.roles[1]: found `@x`; {IDS}"),
        ("{token: x, actions: {fly: true}}", "actions.fly: `fly` is no action; allowed: send, reply, edit, delete"),
        ("{token: x, threads: {open: sometimes}}", "threads.open: found `sometimes`; allowed: off, on_mention, always"),
        (
            "{token: x, gateway_url: 'https://a'}",
            "gateway_url: found `https://a`; allowed: a URL that begins with ws://",
        ),
        ("{token: x, base_url: 'wss://a'}", "base_url: found `wss://a`; allowed: a URL that begins with http:// or "),
        (
            "{token: x, accounts: {work: {token: y, base_url: 'http://a'}}}",
            "accounts.work.base_url: not the same for all bots of Discord; they share one base_url, said once in the "
            "block above",
        ),
        (
            "{accounts: {home: {token: x}, work: {token: y, gateway_url: 'ws://a'}}}",
            "accounts.work.gateway_url: not the same for all bots of Discord; they share one gateway_url, said once",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, line: str) -> None:
    (found,) = mistakes(tmp_path, f"channels: {{discord: {text}}}")
    assert found.startswith(f"config.yaml:1: channels.discord.{line}")


def test_addresses_that_all_share_are_fine(tmp_path: Path) -> None:
    off = "{token: y, base_url: 'http://b', enabled: false}"
    text = f"{{base_url: 'http://a/', token: x, accounts: {{home: {{token: z}}, off: {off}}}}}"
    bots = read(tmp_path, f"channels: {{discord: {text}}}").channels.sections()["discord"].bots()
    assert [bot.base_url for bot in bots.values() if isinstance(bot, DiscordAccount)] == [
        "http://a",
        "http://a",
        "http://b",
    ]


@pytest.mark.parametrize(("opens", "found"), [("off", []), ("on_mention", [True]), ("always", [False, True])])
def test_threads_are_opened_where_it_is_asked_for(opens: str, found: list[bool]) -> None:
    account = DiscordAccount.model_validate({"token": "x", "threads": {"open": opens}})
    said = [
        InboundMessage(
            origin=Origin(place=Place(channel="discord", account="1", chat="2", kind=kind)),
            event_key="m:2:3",
            kind=InboundKind.MESSAGE,
            text="hello",
            sent_at=0,
            mentioned=mentioned,
        )
        for kind in (ChatKind.DIRECT, ChatKind.CHANNEL)
        for mentioned in (False, True)
    ]
    assert [message.mentioned for message in said if account.opens_thread(message)] == found
    assert DiscordThreads().open == "off"


def test_actions_of_the_model_can_be_taken_away() -> None:
    offered = {one.name for one in DiscordAccount.model_validate({"token": "x"}).tool_actions()}
    assert offered >= {"send", "react", "thread_create", "thread_reply", "read", "pin", "unpin", "member_info"}
    left = DiscordAccount.model_validate({"token": "x", "actions": {"delete": False, "pin": True}})
    assert {one.name for one in left.tool_actions()} == offered - {"delete"}


def test_the_official_addresses_are_those_of_the_library() -> None:
    import yarl
    from discord.gateway import DiscordWebSocket
    from discord.http import _set_api_version

    _set_api_version(10)
    from discord.http import Route

    assert settings.URL == Route.BASE
    assert yarl.URL(settings.GATEWAY_URL) == DiscordWebSocket.DEFAULT_GATEWAY


def test_the_library_is_imported_only_for_an_account_that_is_built() -> None:
    program = """
import sys
from channels.registry import sections
sections()["discord"](token="x")
assert "discord" not in sys.modules
import channels.discord.events
assert "discord" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# Limits of calls, as far as they are kept beside the library.


async def test_limits_that_nobody_uses_are_forgotten() -> None:
    api, loop = Api(account(DiscordAccount, token="x")), LoopTime()
    for number in range(255):  # as each interaction has one of its own
        api.get_ratelimit(f"{number}")
    await loop.advance(301)
    one = api.get_ratelimit("new")
    assert list(api._buckets) == ["new"]
    assert api.get_ratelimit("new") is one


# Bodies of "create message": what is escaped and what is not, and where they are cut.


def contents(markdown: str) -> list[str]:
    return [json.loads(body)["content"] for body in bodies(markdown)]


def test_the_arguments_of_a_message() -> None:
    assert [json.loads(body) for body in bodies("**hi** there")] == [
        {"content": "**hi** there", "flags": 4, "allowed_mentions": {"parse": []}}
    ]
    assert bodies("") == bodies("<!-- x -->") == bodies("&nbsp;\u200b") == []


@pytest.mark.parametrize(
    ("markdown", "content"),
    [
        ("# A\n\n## B *c*\n\n#### D", "# A\n\n## B _c_\n\n**D**"),
        ("- # a\n- b", "• **a**\n\n• b"),
        ("*a* **b** ~~c~~ <u>d</u> ||e|| `f`", "_a_ **b** ~~c~~ __d__ ||e|| `f`"),
        ("**a\nb**", "**a**\n**b**"),
        ("*a*b 中**文：**字", "_a_\u200bb 中**文：**字"),
        ("fo*o* `a`<u>`b`</u>", "fo\u200b_o_ `a`\u200b`b`"),
        ("\\# a\n\n\\- b\n\n3\\. c\n\n\\> d\n\n-# e", "\\# a\n\n\\- b\n\n3\\. c\n\n\\> d\n\n\\-# e"),
        ("snake_case 2 * 3 a|b", "snake\\_case 2 \\* 3 a\\|b"),
        ("<@1> <#2> <t:1:R> </a:1> :tada: @everyone", "\\<@1> \\<#2> \\<t\\:1:R> \\</a:1> \\:tada: @everyone"),
        ("[a [1]](https://e.org/(x)_*y*)", "[a [1]](https://e.org/%28x%29_*y*)"),
        ("https://e.org/a_b and <https://e.org/c>", "<https://e.org/a_b> and <https://e.org/c>"),
        ("_see https://e.org/a_b_", "_see_ <https://e.org/a_b>"),
        (
            "_a [b](https://e.org/c_d) e_ **[f](https://e.org/g_h)**",
            "_a_ [b](https://e.org/c_d) _e_ **[f](https://e.org/g_h)**",
        ),
        ("[a](http://localhost:1) [b](mailto:c@d.e)", "[a](http://localhost:1) b (c@d.e)"),
        ("[https://a.b](https://c.d)", "https:\\//a.b (https:\\//c.d)"),
        ("![pic](https://e.org/x.png)", "[pic](https://e.org/x.png)"),
        ("``` a`b``c ```", "`` a`b`\u200b`c ``"),
        ("~~~c++\na ```` b\n~~~", "```c++\na ``\u200b`` b\n```"),
        ("> a\n> ```\n> b\n> ```\n\nc", "> a\n> \n> ```\n> b\n> ```\n\nc"),
        ("|a|b|\n|-|-|\n|1|2|", "```\na │ b\n──┼──\n1 │ 2\n```"),
        ("1. a\n2. b\n   - c", "1\\. a\n2\\. b\n   ◦ c"),
    ],
)
def test_what_it_becomes(markdown: str, content: str) -> None:
    assert contents(markdown) == [content]


def test_it_has_at_most_2000_code_points_with_its_marks() -> None:
    assert [len(content) for content in contents("😀" * 2500)] == [2000, 500]
    found = contents("a_b " * 900)
    assert len(found) == 3
    assert all(1500 < len(content) <= 2000 for content in found[:2])
    (longest, *_) = contents("[w](https://e.org/" + "x" * 600 + ")")
    assert longest == "w (https:\\//e.org/" + "x" * 600 + ")"
