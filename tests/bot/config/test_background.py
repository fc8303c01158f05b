"""The sections of what the bot does unasked: what may be written, what it becomes, and each mistake in one line."""

from datetime import timedelta
from pathlib import Path

import pytest

from bot.config.background import Heartbeat
from bot.config.checks import warnings
from bot.config.errors import ConfigError
from bot.config.load import load
from bot.config.model import Config
from heartbeat.checklist import DEFAULT
from heartbeat.gate import Budget

DURATION = "a duration with its unit, such as 45s, 30m, 1h30m or 24h"
CHANNELS = "telegram, discord, slack"
SESSION = "the key of a conversation, such as agent:main:main or agent:main:<channel>:direct:<id>"
BUDGET = "a whole number of tokens, or money such as $2 or 2 USD; more than nothing"
TIME = "a time of the day, such as 04:00 or 23:30"


def read(tmp_path: Path, text: str, **environ: str) -> Config:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    return load(None, environ, tmp_path)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    return str(caught.value).splitlines()


def beat(tmp_path: Path, key: str, value: str, **environ: str) -> object:
    """What a key of `heartbeat` becomes."""
    return getattr(read(tmp_path, f"heartbeat: {{{key}: {value}}}", **environ).heartbeat, key)


def test_by_default_it_looks_every_half_hour_and_within_a_budget(tmp_path: Path) -> None:
    found = read(tmp_path, "heartbeat: {}\nschedules:\n")
    assert found.heartbeat == Heartbeat() == load(None, {}, tmp_path / "none").heartbeat
    assert (found.heartbeat.every, found.heartbeat.timeout_seconds) == (timedelta(minutes=30), 300)
    assert (found.heartbeat.prompt, found.heartbeat.target, found.heartbeat.session) == (DEFAULT, "last", None)
    assert (found.heartbeat.daily_budget, found.schedules.max_concurrent) == (Budget(300_000, "tokens"), 2)
    assert (found.heartbeat.ack_max_chars, found.heartbeat.show_ok, found.heartbeat.show_alerts) == (300, False, True)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30m", 1800),
        ("1s", 1),
        ("2s", 2),
        ("1.5s", 1.5),
        ("1h30m", 5400),
        *((off, 0) for off in ("0", "'0'", "0s", "0m")),
    ],
)
def test_intervals(tmp_path: Path, written: str, seconds: float) -> None:
    assert beat(tmp_path, "every", written) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("written", "budget", "shown"),
    [
        ("1", Budget(1, "tokens"), 1),
        ("999999999999", Budget(999_999_999_999, "tokens"), 999_999_999_999),
        ("${TOKENS}", Budget(5000, "tokens"), 5000),
        ("$2", Budget(2, "USD"), "$2"),
        ("$ 2.50", Budget(2.5, "USD"), "$2.5"),
        ("2 USD", Budget(2, "USD"), "$2"),
        ("0.0001USD", Budget(0.0001, "USD"), "$0.0001"),
        ("$123456.1234", Budget(123456.1234, "USD"), "$123456.1234"),
    ],
)
def test_budgets(tmp_path: Path, written: str, budget: Budget, shown: int | str) -> None:
    config = read(tmp_path, f"heartbeat: {{daily_budget: {written}}}", TOKENS="5000")
    assert config.heartbeat.daily_budget == budget
    assert config.model_dump(mode="json")["heartbeat"]["daily_budget"] == shown
    assert Config.model_validate(config.model_dump(by_alias=True)).heartbeat == config.heartbeat


@pytest.mark.parametrize(
    ("written", "start", "end", "zone"),
    [
        ("{}", 0, 1440, ""),
        ("{start: 08:00, end: '22:30', timezone: Europe/Berlin}", 480, 1350, "Europe/Berlin"),
        ("{start: 22:00, end: 6:05}", 1320, 365, ""),
        ("{end: 24:00}", 0, 1440, ""),
        ("{start: 08:00, end: 08:00, timezone: ''}", 480, 480, ""),
    ],
)
def test_active_hours(tmp_path: Path, written: str, start: int, end: int, zone: str) -> None:
    hours = read(tmp_path, f"heartbeat: {{active_hours: {written}}}").heartbeat.active_hours
    assert (hours.start, hours.end, hours.timezone) == (start, end, zone)
    shown = hours.model_dump(mode="json")
    assert type(hours).model_validate(shown) == hours
    assert shown["start"] == f"{start // 60:02}:{start % 60:02}"


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("target", "none"),
        ("target", "telegram:-100123"),
        ("target", "telegram:work:12"),
        ("target", "slack:#ops team"),
        ("session", "agent:main:main"),
        ("session", "agent:main:discord:channel:7:thread:8"),
        ("model", "anthropic/claude-haiku-4-5"),
        ("thinking", "auto"),
        ("prompt", "Look at the garden."),
    ],
)
def test_what_is_kept_as_it_is(tmp_path: Path, key: str, written: str) -> None:
    assert beat(tmp_path, key, f'"{written}"') == written


@pytest.mark.parametrize(
    ("key", "written", "sentence"),
    [
        ("every", "30", f"every: found `30`; allowed: {DURATION}"),
        ("every", "false", f"every: found `false`; allowed: {DURATION}"),
        ("every", "-1s", f"every: found `-1s`; allowed: {DURATION}"),
        ("every", "0.5s", "every: found `0.5s`; allowed: at least 1s, or 0 for no beats"),
        ("evry", "1h", "evry: unknown key; nearest known name is `every`"),
        ("prompt", "''", "prompt: found `nothing`; allowed: "),
        ("active_hours", "{start: 24:00}", f"active_hours.start: found `24:00`; allowed: {TIME}"),
        ("active_hours", "{start: 8}", f"active_hours.start: found `8`; allowed: {TIME}"),
        ("active_hours", "{end: 24:01}", f"active_hours.end: found `24:01`; allowed: {TIME}, or 24:00"),
        ("active_hours", "{end: 08:60}", f"active_hours.end: found `08:60`; allowed: {TIME}, or 24:00"),
        ("active_hours", "always", "active_hours: found `always`; allowed: a mapping of keys to values"),
        (
            "active_hours",
            "{timezone: europe/berlin}",
            "active_hours.timezone: `europe/berlin` is no time zone that this machine knows; allowed: the IANA name of"
            " a time zone, such as Europe/Berlin; nearest is Europe/Berlin",
        ),
        (
            "target",
            "telegram",
            f"target: found `telegram`; allowed: last, none, or <channel>:<chat> with one of {CHANNELS}",
        ),
        ("target", "irc:x", "target: found `irc:x`; allowed: last, none, or <channel>:<chat> with one of"),
        ("target", "'telegram: '", "target: found `telegram: `; allowed: last, none, or <channel>:<chat> with one of"),
        (
            "target",
            "console:local",
            "target: found `console:local`; allowed: last, none, or <channel>:<chat> with one of",
        ),
        ("session", "main", f"session: found `main`; allowed: {SESSION}"),
        ("session", "agent:main:job:a", f"session: found `agent:main:job:a`; allowed: {SESSION}"),
        ("session", "agent:main:main:heartbeat", f"session: found `agent:main:main:heartbeat`; allowed: {SESSION}"),
        ("model", "gpt", "model: found `gpt`; allowed: provider/model, or offline"),
        (
            "model",
            "antropic/x",
            "model: `antropic` is no provider; allowed: anthropic, offline, ollama, openai; nearest is",
        ),
        (
            "model",
            "vllm/x",
            "model: `vllm` is no provider; allowed: anthropic, offline, ollama, openai; a section `providers.vllm` "
            "makes it known",
        ),
        (
            "thinking",
            "hgih",
            "thinking: found `hgih`; allowed: auto, off, low, medium, high, x-high; nearest is `high`",
        ),
        ("ack_max_chars", "-1", "ack_max_chars: found `-1`; allowed: greater than or equal to 0"),
        ("show_ok", "perhaps", "show_ok: found `perhaps`; allowed: true or false"),
        *(
            ("daily_budget", wrong, f"daily_budget: found `{wrong}`; allowed: {BUDGET}")
            for wrong in ("0", "-5", "$0", "1.5", "true", "2 EUR", "$1_000", "$0.00001")
        ),
        ("daily_budget", "[1]", f"daily_budget: found a list; allowed: {BUDGET}"),
        ("timeout_seconds", "0", "timeout_seconds: found `0`; allowed: greater than 0"),
        (
            "timeout_seconds",
            "[1]",
            "timeout_seconds: found a list; allowed: a number of seconds, or a duration such as",
        ),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, key: str, written: str, sentence: str) -> None:
    (found,) = mistakes(tmp_path, f"agent: {{}}\nheartbeat:\n  {key}: {written}")
    assert found.startswith(f"config.yaml:3: heartbeat.{sentence}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "schedules: {max_concurrent: 0}",
            "1: schedules.max_concurrent: found `0`; allowed: greater than or equal to 1",
        ),
        ("schedules: {most: 2}", "1: schedules.most: unknown key; known here: max_concurrent"),
        (
            "channels: {slack: {heartbeat: {direct: deny}}}",
            "1: channels.slack.heartbeat.direct: found `deny`; allowed: allow, block",
        ),
        (
            "channels: {slack: {heartbeat: {every: 1h}}}",
            "1: channels.slack.heartbeat.every: unknown key; known here: direct, show_alerts, show_ok",
        ),
    ],
)
def test_a_mistake_elsewhere(tmp_path: Path, text: str, line: str) -> None:
    assert mistakes(tmp_path, text) == [f"config.yaml:{line}"]


@pytest.mark.parametrize(
    ("price", "sentence"),
    [
        ("{input: 3}", "output: missing; allowed: a value; it is needed here"),
        ("{input: cheap, output: 1}", "input: found `cheap`; allowed: a number"),
        ("{input: true, output: 1}", "input: found `true`; allowed: a number"),
        ("{input: -1, output: 1}", "input: found `-1`; allowed: greater than or equal to 0"),
        ("{input: .inf, output: 1}", "input: found `.inf`; allowed: a finite number"),
        ("{input: 1, output: 1, cached: 0}", "cached: unknown key; nearest known name is `cache_read`"),
    ],
)
def test_a_mistake_in_a_price(tmp_path: Path, price: str, sentence: str) -> None:
    text = f"providers:\n  openai:\n    models:\n      m: {{price: {price}}}"
    assert mistakes(tmp_path, text) == [f"config.yaml:4: providers.openai.models.m.price.{sentence}"]


def test_what_a_channel_does_not_say_is_as_everywhere(tmp_path: Path) -> None:
    accounts = "accounts: {a: {token: '1:a', heartbeat: {direct: block}}, b: {token: '1:b'}}"
    text = f"channels: {{telegram: {{heartbeat: {{show_ok: true}}, {accounts}}}}}"
    channels = read(tmp_path, text).channels
    found = [
        one.heartbeat for one in (channels.telegram.accounts["a"], channels.telegram.accounts["b"], channels.slack)
    ]
    shown = [(one.show_ok, one.show_alerts, one.direct) for one in found]
    assert shown == [(None, None, "block"), (True, None, "allow"), (None, None, "allow")]


def test_alerts_for_a_channel_that_is_not_enabled_are_a_warning(tmp_path: Path) -> None:
    (found,) = warnings(read(tmp_path, "heartbeat: {target: 'slack:C1'}"))
    assert found == "heartbeat.target is on Slack, which is not enabled, so no alert is shown to anybody"
    assert list(warnings(read(tmp_path, "heartbeat: {target: none}"))) == []


def test_links_that_do_nothing_are_a_warning(tmp_path: Path) -> None:
    links = "identity_links: {ada: [telegram:1, discord:2]}"
    for scope in ("main", "per-channel-peer", "per-account-channel-peer"):
        (found,) = warnings(read(tmp_path, f"sessions: {{{links}, dm_scope: {scope}}}"))
        assert found.startswith(f"sessions.identity_links does nothing with sessions.dm_scope: {scope}; ")
    assert list(warnings(read(tmp_path, f"sessions: {{{links}, dm_scope: per-peer}}"))) == []
