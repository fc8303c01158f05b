"""The manifest of `docs/channels/slack.md` asks for what the adapter needs, and for nothing else."""

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from channels.slack.api import EVENT_SCOPES, METHODS
from channels.slack.events import EVENTS
from tests.standins import slack_shapes as shapes
from tests.standins.slack_manifest import install
from tests.standins.slack_server import SlackServer

PAGE = Path(__file__).parents[3] / "docs" / "channels" / "slack.md"


def manifests() -> tuple[dict[str, Any], dict[str, Any]]:
    """The one for Socket Mode, and what the one for HTTP has instead."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    shown = [YAML(typ="safe").load(block) for block in blocks]
    whole, instead = [one for one in shown if "features" in one]
    return whole, instead


def merged(below: Any, above: Any) -> Any:
    """One mapping over another."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{name: merged(below.get(name), value) for name, value in above.items()}}


def test_scopes_are_those_of_the_methods_and_events() -> None:
    whole, _ = manifests()
    scopes = whole["oauth_config"]["scopes"]["bot"]
    assert scopes == sorted(scopes)
    assert set(scopes) == {scope for needed in METHODS.values() for scope in needed} | set(EVENT_SCOPES)


def test_events_are_those_that_are_read() -> None:
    whole, _ = manifests()
    events = whole["settings"]["event_subscriptions"]["bot_events"]
    assert {event.partition(".")[0] for event in events} == set(EVENTS)
    assert {event for event in shapes.EVENTS if event.startswith("message.")} < set(events)


async def test_slack_takes_both_manifests() -> None:
    whole, instead = manifests()
    async with SlackServer() as slack:
        for manifest in (whole, merged(whole, instead)):
            install(slack, manifest)
            assert slack.commands == {"/hark"}
            assert slack.interactive
            assert not manifest["features"]["app_home"]["messages_tab_read_only_enabled"]
