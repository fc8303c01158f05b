"""Deliveries as calls."""

import pytest

from channels.slack.api import is_slack
from channels.slack.calls import emoji_name
from channels.slack.history import position


@pytest.mark.parametrize(
    ("emoji", "name"),
    [
        ("👀", "eyes"),
        ("👍", "+1"),
        ("✅", "white_check_mark"),
        ("⏳", "hourglass_flowing_sand"),
        ("❤️", "heart"),
        ("❤", "heart"),
        ("🤔", "thinking_face"),
        ("👨‍💻", "male-technologist"),
        ("👍🏿", "+1::skin-tone-6"),
        ("🇩🇪", "de"),
        (":party-parrot:", "party-parrot"),
        ("eyes", "eyes"),
    ],
)
def test_names_of_emoji_are_slack_s(emoji: str, name: str) -> None:
    assert emoji_name(emoji) == name


@pytest.mark.parametrize("emoji", ["", "::", "ä", "👀👀", "☃x"])
def test_what_is_no_emoji(emoji: str) -> None:
    with pytest.raises(ValueError, match="no emoji that Slack has"):
        emoji_name(emoji)


def test_ids_of_messages_are_in_order() -> None:
    assert position(1_700_000_000_123) == "1700000000.123000"
    assert position(-5) == "0000000000.000000"


def test_hosts_of_slack() -> None:
    good = ["https://files.slack.com/x", "https://hooks.slack.com/x", "https://slack.com/x", "http://127.0.0.1:80/x"]
    bad = ["http://slack.com/x", "https://slack.com.evil.org/x", "https://evilslack.com", "http://127.0.0.1:81/", ""]
    assert [url for url in good + bad if is_slack(url, "http://127.0.0.1:80/api")] == good
