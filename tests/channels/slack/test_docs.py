"""The manifest of `docs/channels/slack.md` asks for what the adapter needs, and for nothing else."""

from channels.slack.api import SCOPES
from channels.slack.events import EVENTS
from tests.channels.slack.manifest import manifest
from tests.standins import slack_shapes as shapes
from tests.standins.slack_manifest import install
from tests.standins.slack_server import SlackServer


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
