"""Discord's section of the configuration: what is refused, and what an account is built of."""

import subprocess
import sys
from pathlib import Path

import pytest

from channels.discord import settings
from channels.discord.settings import DiscordAccount, DiscordThreads
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from tests.bot.config.test_load import mistakes, read

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
