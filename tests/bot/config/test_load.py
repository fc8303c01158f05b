"""Reading the configuration: where it is looked for, what its values become, and every mistake in one go."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.registry import GROUPS, NAMES
from bot.config.errors import ConfigError
from bot.config.load import load
from bot.config.model import Config
from bot.config.values import MESSAGE, SCHEDULE

TOKEN = "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"


def read(tmp_path: Path, text: str, **environ: str) -> Config:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    return load(None, environ, tmp_path)


def mistakes(tmp_path: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, **environ)
    return str(caught.value).splitlines()


class TestLookup:
    def test_no_file_is_fine(self, tmp_path: Path) -> None:
        config = load(None, {}, tmp_path)
        assert config == Config(workspace=tmp_path / "workspace", state=tmp_path / "state")

    def test_named_file_wins_over_variable_and_folder(self, tmp_path: Path) -> None:
        for name in ("named", "variable", "config"):
            (tmp_path / f"{name}.yaml").write_text(f"agent: {{name: {name}}}")
        environ = {"HARK_CONFIG": "variable.yaml"}
        assert load(Path("named.yaml"), environ, tmp_path).agent.name == "named"
        assert load(None, environ, tmp_path).agent.name == "variable"
        assert load(None, {"HARK_CONFIG": ""}, tmp_path).agent.name == "config"

    @pytest.mark.parametrize("by_variable", [True, False])
    def test_named_file_must_exist(self, tmp_path: Path, by_variable: bool) -> None:
        named = None if by_variable else Path("other.yaml")
        with pytest.raises(ConfigError, match=r"^other\.yaml: cannot be read: No such file or directory$"):
            load(named, {"HARK_CONFIG": "other.yaml"} if by_variable else {}, tmp_path)

    def test_folders_are_relative_to_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc" / "hark.yaml").write_text("{workspace: work, state: /var/lib/hark}")
        config = load(Path("etc/hark.yaml"), {}, tmp_path)
        assert (config.workspace, config.state) == (tmp_path / "etc" / "work", Path("/var/lib/hark"))

    def test_home_is_understood(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/ada")
        assert read(tmp_path, "state: ~/hark").state == Path("/home/ada/hark")

    @pytest.mark.parametrize(
        "text", ["", "# nothing\n", "---\n", "null\n", "agent:\nowners:\nchannels:\n  telegram:\n"]
    )
    def test_nothing_written_means_the_defaults(self, tmp_path: Path, text: str) -> None:
        assert read(tmp_path, text) == load(None, {}, tmp_path / "empty").model_copy(
            update={"workspace": tmp_path / "workspace", "state": tmp_path / "state"}
        )

    def test_a_folder_or_a_binary_file_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").mkdir()
        with pytest.raises(ConfigError, match=r"config\.yaml: cannot be read: Is a directory"):
            load(None, {}, tmp_path)
        (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(ConfigError, match="not a text in UTF-8"):
            load(Path("binary"), {}, tmp_path)


class TestValues:
    def test_yaml_12_and_json(self, tmp_path: Path) -> None:
        assert read(tmp_path, "agent: {name: on, max_steps: 010}").agent.name == "on"
        assert read(tmp_path, "agent: {thinking: off}").agent.thinking == "off"
        assert read(tmp_path, '{"agent": {"max_steps": 3, "name": "\\u00c5da"}}').agent.name == "Åda"
        assert read(tmp_path, "\ufeffagent: {max_steps: 3}").agent.max_steps == 3

    def test_durations(self, tmp_path: Path) -> None:
        config = read(tmp_path, "agent: {timeout_seconds: 1h30m, drain_seconds: 0.5}\ndelivery: {max_age: 2d}")
        assert (config.agent.timeout_seconds, config.agent.drain_seconds) == (5400, 0.5)
        assert config.delivery.max_age == timedelta(days=2)

    def test_ids_are_kept_as_text(self, tmp_path: Path) -> None:
        dm = "{allow_from: [12345, '678', 9999999999999]}"
        config = read(tmp_path, f"owners: [telegram:12345]\nchannels: {{telegram: {{dm: {dm}}}}}")
        assert config.owners == ("telegram:12345",)
        assert config.channels.telegram.dm.allow_from == ("12345", "678", "9999999999999")

    def test_a_token_enables_telegram(self, tmp_path: Path) -> None:
        telegram = read(tmp_path, f"channels: {{telegram: {{token: {TOKEN}}}}}").channels.telegram
        assert telegram.enabled
        assert telegram.token is not None
        assert telegram.token.get_secret_value() == TOKEN
        assert TOKEN not in repr(telegram)
        written = f"channels: {{telegram: {{enabled: false, token: {TOKEN}}}}}"
        assert not read(tmp_path, written).channels.telegram.enabled
        empty = "channels: {telegram: {token: '${TELEGRAM_TOKEN:-}'}}"
        assert not read(tmp_path, empty).channels.telegram.enabled

    def test_break_is_a_key(self, tmp_path: Path) -> None:
        text = "channels: {telegram: {streaming: {break: message_end}}}"
        assert read(tmp_path, text).channels.telegram.streaming.break_at == "message_end"

    def test_providers(self, tmp_path: Path) -> None:
        text = """
providers:
  shop:
    api: openai-chat
    base_url: http://127.0.0.1:9/v1/
    api_keys: [${SHOP_KEY}, "${OTHER:-}"]
    models: {"gpt-5.1": {context_window: 4096, params: {temperature: 0.5, stop: [a]}}}
agent: {model: shop/gpt-5.1}
"""
        provider = read(tmp_path, text, SHOP_KEY="sk-1").providers["shop"]
        assert provider.base_url == "http://127.0.0.1:9/v1"
        assert [key.get_secret_value() for key in provider.api_keys] == ["sk-1"]
        assert provider.models["gpt-5.1"].params == {"temperature": 0.5, "stop": ["a"]}

    def test_a_configuration_cannot_be_changed(self, tmp_path: Path) -> None:
        config = load(None, {}, tmp_path)
        with pytest.raises(ValueError, match="frozen"):
            config.agent.name = "Other"  # type: ignore[misc]


class TestVariables:
    @pytest.mark.parametrize(
        ("written", "name"),
        [
            ("${NAME}", "Ada"),
            ("'${NAME}'", "Ada"),
            ('"I am ${NAME}, ${NAME}"', "I am Ada, Ada"),
            ("${NONE:-Bob}", "Bob"),
            ("${EMPTY:-Bob}", "Bob"),
            ("$${NAME}", "${NAME}"),
            ("$NAME", "$NAME"),
            ("${YAML}", "[1, 2]: # x"),
        ],
    )
    def test_put_in(self, tmp_path: Path, written: str, name: str) -> None:
        environ = {"NAME": "Ada", "EMPTY": "", "YAML": "[1, 2]: # x"}
        assert read(tmp_path, f"agent: {{name: {written}}}", **environ).agent.name == name

    def test_in_a_number(self, tmp_path: Path) -> None:
        assert read(tmp_path, "gateway: {port: ${PORT:-9000}}").gateway.port == 9000

    def test_a_variable_in_a_comment_is_not_asked_for(self, tmp_path: Path) -> None:
        assert read(tmp_path, "# ${MISSING}\nagent: {name: A}  # ${MISSING}").agent.name == "A"

    def test_missing_ones_are_all_said(self, tmp_path: Path) -> None:
        text = "agent:\n  name: ${ONE}\nowners:\n  - ${TWO}\n  - ${}\n"
        assert mistakes(tmp_path, text) == [
            "config.yaml:2: agent.name: the environment variable ONE is not set",
            "config.yaml:4: owners[0]: the environment variable TWO is not set",
            "config.yaml:5: owners[1]: not a variable; allowed: ${NAME}, ${NAME:-default}, $${ for a plain ${",
        ]

    @given(st.text(st.characters(blacklist_categories=["Cs", "Co", "Cc"]), min_size=1, max_size=30))
    def test_no_text_in_a_variable_is_read_as_yaml(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        folder = tmp_path_factory.getbasetemp()
        prompt = read(folder, "channels: {telegram: {prompt: 'x${TEXT}'}}", TEXT=text).channels.telegram.prompt
        assert prompt == f"x{text}"


class TestMistakes:
    def test_all_of_them_at_once_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        text = """\
agent:
  max_concurent: 3
  thinking: hgih
  timeout_seconds: soon
  max_steps: true
  model: antropic/claude
owners: [telegram:1, foo:2, 12]
transcription: []
chanels: {}
channels:
  telegram:
    enabled: true
    dm: {allow_from: [1, bob], policy: pair}
    groups: {mention_patterns: ["(hark"], allow: {-100: {users: [-100], tools: {deny: [raed]}}}}
sessions: {reset: {daily_at: 25:00, by_channel: {irc: {idle: 8}}}}
gateway: {host: 0.0.0.0, port: 99999}
delivery: {max_age: 3600}
agent: {}
"""
        assert mistakes(tmp_path, text) == [
            "config.yaml:2: agent.max_concurent: unknown key; nearest known name is `max_concurrent`",
            "config.yaml:3: agent.thinking: found `hgih`; allowed: auto, off, low, medium, high, x-high; "
            "nearest is `high`",
            "config.yaml:4: agent.timeout_seconds: found `soon`; allowed: a number of seconds, or a "
            "duration such as "
            "45s, 30m or 1h30m",
            "config.yaml:5: agent.max_steps: found `true`; allowed: a whole number",
            "config.yaml:7: owners[1]: found `foo:2`; allowed: <platform>:<id> such as telegram:12345, "
            "with one of "
            "telegram, discord, slack, console, http",
            "config.yaml:7: owners[2]: found `12`; allowed: <platform>:<id> such as telegram:12345, with "
            "one of "
            "telegram, discord, slack, console, http",
            "config.yaml:8: transcription: found a list; allowed: a mapping of keys to values",
            "config.yaml:9: chanels: unknown key; nearest known name is `channels`",
            "config.yaml:13: channels.telegram.dm.allow_from[1]: found `bob`; allowed: a Telegram user "
            "id, which is "
            "a whole number (names can change hands)",
            "config.yaml:13: channels.telegram.dm.policy: found `pair`; allowed: pairing, allowlist, open, disabled; "
            "nearest is `pairing`",
            "config.yaml:14: channels.telegram.groups.mention_patterns[0]: found `(hark`; allowed: a regular "
            "expression (this one: missing ), unterminated subpattern at position 0)",
            "config.yaml:14: channels.telegram.groups.allow.-100.users[0]: found `-100`; allowed: a Telegram user "
            "id, which is a whole number (names can change hands)",
            "config.yaml:15: sessions.reset.daily_at: found `25:00`; allowed: a time of the day, such as 04:00 or "
            "23:30",
            "config.yaml:15: sessions.reset.by_channel.irc: `irc` is not known here; allowed: telegram, discord, "
            "slack, console, http",
            "config.yaml:15: sessions.reset.by_channel.irc.idle: found `8`; allowed: a duration with its unit, such as "
            "45s, 30m, 1h30m or 24h",
            "config.yaml:16: gateway.port: found `99999`; allowed: less than or equal to 65535",
            "config.yaml:17: delivery.max_age: found `3600`; allowed: a duration with its unit, such as "
            "45s, 30m, "
            "1h30m or 24h",
            "config.yaml:18: agent: written twice; the first one is in line 1",
        ]

    def test_every_mistake_is_told_at_once_but_what_only_follows_from_another(self, tmp_path: Path) -> None:
        text = """\
agent: {model: antropic/claude}
channels: {telegram: {enabled: true}}
gateway: {host: 0.0.0.0, token: "${TOKEN}"}
"""
        telegram = "config.yaml:2: channels.telegram.token: missing; Telegram is enabled and needs the token"
        first, second, third = mistakes(tmp_path, text)
        assert first.startswith("config.yaml:1: agent.model: `antropic` is no provider")
        assert second.startswith(telegram)
        assert third == "config.yaml:3: gateway.token: the environment variable TOKEN is not set"
        assert mistakes(tmp_path, f"{text}state: .")[3].startswith("config.yaml:4: state: must be apart from workspace")
        assert mistakes(tmp_path, text.replace(', token: "${TOKEN}"', ""))[1:] == [
            "config.yaml:2: channels.telegram.token: missing; Telegram is enabled and needs the token from @BotFather",
            "config.yaml:3: gateway.host: `0.0.0.0` can be reached from other machines; set gateway.token, or use "
            "127.0.0.1",
        ]
        (model,) = mistakes(tmp_path, text.splitlines()[0])
        assert model.startswith("config.yaml:1: agent.model: `antropic` is no provider; allowed: anthropic, offline, ")
        assert model.endswith("; nearest is `anthropic`")

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("- a\n", "config.yaml:1: the file must be a mapping of keys to values"),
            ("agent: [\n", "config.yaml:2: not valid YAML: "),
            ("agent: *a\n", "config.yaml:1: not valid YAML: found undefined alias "),
            ("agent: {}\n---\nagent: {}\n", "config.yaml:2: not valid YAML: expected a single document"),
            ("agent: \x01\n", "config.yaml: not valid YAML: "),
            ("a: &a [*a]\n", "config.yaml: too deep or too large"),
            ("[" * 1000, "config.yaml: too deep or too large"),
            ("? [a]\n: 1\n", "config.yaml:1: a key must be a text"),
            ("agent: 3\n", "config.yaml:1: agent: found `3`; allowed: a mapping of keys to values"),
            ("owners: telegram:1\n", "config.yaml:1: owners: found `telegram:1`; allowed: a list"),
            (
                "zzz: 1\n",
                "config.yaml:1: zzz: unknown key; known here: agent, approvals, budget, catch_up, channels, ",
            ),
            (
                "gateway: {token: 12}\n",
                "config.yaml:1: gateway.token: found a hidden value; allowed: a text (put it ",
            ),
            (
                "agent: {timeout_seconds: -1}\n",
                "config.yaml:1: agent.timeout_seconds: found `-1`; allowed: greater than 0",
            ),
            (
                "agent: {timeout_seconds: .inf}\n",
                "config.yaml:1: agent.timeout_seconds: found `.inf`; allowed: ",
            ),
            (
                "agent: {model: gpt}\n",
                "config.yaml:1: agent.model: found `gpt`; allowed: provider/model, or offline",
            ),
            (
                "providers: {a: {}}\n",
                "config.yaml:1: providers.a.api: missing; allowed: anthropic, openai-chat",
            ),
            (
                "providers: {a: {api: cli}}\n",
                "config.yaml:1: providers.a.command: missing; allowed: [claude], [codex], [gemini], or its path",
            ),
            (
                "providers: {a: {api: cli, command: [/opt/aider]}}\n",
                "config.yaml:1: providers.a.command: this program is not known, so its tools could be on; allowed:",
            ),
            (
                "providers: {a: {api: cli, command: [claude, --tools, Bash]}}\n",
                "config.yaml:1: providers.a.command: more than the program; its options are Hark's",
            ),
            (
                "providers: {a: {api: cli, command: [claude], api_keys: [sk-1]}}\n",
                "config.yaml:1: providers.a.api_keys: a program has its own address and login; remove it",
            ),
            (
                "providers: {a: {api: anthropic, command: [claude]}}\n",
                "config.yaml:1: providers.a.command: only `api: cli` has a command; remove one of them",
            ),
            ("providers: {a: }\n", "config.yaml:1: providers.a: found nothing; allowed: a mapping"),
            ("providers: {offline: {}}\n", "config.yaml:1: providers.offline: this name is taken"),
            (
                "{workspace: ., state: /var/lib/hark}\n",
                "config.yaml:1: workspace: found `",
            ),
            ("state: workspace/state\n", "config.yaml:1: state: must be apart from workspace"),
            (
                "transcription: []\n",
                "config.yaml:1: transcription: found a list; allowed: a mapping of keys to values",
            ),
            (
                "sessions: {identity_links: {ada: [telegram:1], bob: [telegram:1]}}\n",
                "config.yaml:1: sessions.identity_links.bob[0]: `telegram:1` already belongs to `ada`",
            ),
            (
                "channels: {telegram: {streaming: {min_chars: 5000}}}\n",
                "config.yaml:1: channels.telegram.streaming.min_chars: 5000 is more than max_chars, 1200",
            ),
        ],
    )
    def test_one_line_each(self, tmp_path: Path, text: str, line: str) -> None:
        (found,) = mistakes(tmp_path, text)
        assert found.startswith(line)

    @pytest.mark.parametrize(
        "url", ["", "http://bot.example/hook", "https://localhost/h", "https://192.168.1.5/h", "https://nas.local/h"]
    )
    def test_a_webhook_that_telegram_cannot_reach(self, tmp_path: Path, url: str) -> None:
        telegram = f"token: '{TOKEN}', mode: webhook" + (f", webhook_url: '{url}'" if url else "")
        (mistake,) = mistakes(tmp_path, f"agent: {{}}\nchannels:\n  telegram: {{{telegram}}}")
        assert mistake.startswith("config.yaml:3: channels.telegram.webhook_url: mode webhook needs the public address")
        own = f"{telegram}, base_url: 'http://127.0.0.1:8081/bot'"
        for fine in (own, f"{telegram}, enabled: false", telegram.replace("mode: webhook", "mode: polling")):
            assert read(tmp_path, f"channels: {{telegram: {{{fine}}}}}")

    def test_a_webhook_of_a_further_account(self, tmp_path: Path) -> None:
        text = f"channels: {{telegram: {{token: '{TOKEN}', accounts: {{two: {{token: '1:x', mode: webhook%s}}}}}}}}"
        (mistake,) = mistakes(tmp_path, text % "")
        assert mistake.startswith("config.yaml:1: channels.telegram.accounts.two.webhook_url: mode webhook needs")
        assert read(tmp_path, text % ", webhook_url: 'https://bot.example/two'")

    def test_a_secret_is_never_shown(self, tmp_path: Path) -> None:
        text = f"""\
agent: {{name: [{TOKEN}], thinking: {TOKEN}}}
owners: ["{TOKEN}"]
providers: {{x: {{api: sk-secret, base_url: "ftp://me:sk-secret@host", api_keys: {{sk-secret: 1}}}}}}
channels: {{telegram: {{token: [{TOKEN}], dm: {{allow_from: ["{TOKEN}"]}}}}}}
gateway: {{token: 42424242}}
tools: {{deny: "${{KEY}}"}}
"""
        found = "\n".join(mistakes(tmp_path, text.replace("api: sk-secret, ", ""), KEY="sk-secret"))
        assert "AAHdq" not in found
        assert "42424242" not in found
        assert "sk-secret@" not in found
        assert "found `${KEY}`" in found

    def test_one_slip_is_one_line(self, tmp_path: Path) -> None:
        text = "gateway: {host: 0.0.0.0, token: [a]}\nchannels: {telegram: {enabled: true, token: ${NONE}}}"
        assert [line.split(": ")[1] for line in mistakes(tmp_path, text)] == [
            "gateway.token",
            "channels.telegram.token",
        ]

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
    def test_loopback_needs_no_token(self, tmp_path: Path, host: str) -> None:
        assert read(tmp_path, f"gateway: {{host: '{host}'}}").gateway.host == host

    def test_another_address_with_a_token(self, tmp_path: Path) -> None:
        assert read(tmp_path, "gateway: {host: 0.0.0.0, token: abcdefgh-0123456}").gateway.host == "0.0.0.0"

    @pytest.mark.parametrize(
        "token", ["''", "'   '", "fifteen-charact", "aaaaaaaaaaaaaaaaaaaa", "sixteen or more with spaces"]
    )
    def test_a_weak_token(self, tmp_path: Path, token: str) -> None:
        (mistake,) = mistakes(tmp_path, f"agent: {{}}\ngateway: {{token: {token}}}")
        assert mistake.startswith("config.yaml:2: gateway.token: found a hidden value; allowed: at least 16 characters")

    def test_an_unset_token_is_not_a_password(self, tmp_path: Path) -> None:
        assert mistakes(tmp_path, "gateway: {token: '${HARK_TOKEN:-}'}") != []
        assert read(tmp_path, "gateway: {token: null}").gateway.token is None

    def test_commands_that_are_allowed(self, tmp_path: Path) -> None:
        assert mistakes(
            tmp_path, "tools:\n  exec:\n    allowlist:\n    - git push **\n    - 'make \"all'\n    - bin/x"
        ) == [
            "config.yaml:5: tools.exec.allowlist[1]: 'make \"all': the quotation marks do not match.",
            "config.yaml:6: tools.exec.allowlist[2]: 'bin/x': a command is a bare name or an absolute path.",
        ]

    @pytest.mark.parametrize("key", ["allow", "deny"])
    def test_names_of_tools(self, tmp_path: Path, key: str) -> None:
        found = mistakes(tmp_path, f"tools:\n  {key}:\n  - read\n  - exce\n  - WRTE\n  - w*\n  - pdf*\n  - group:sf")
        known = f"allowed: {', '.join(sorted((*NAMES, MESSAGE, SCHEDULE)))}, {', '.join(GROUPS)}, and * for anything"
        assert found == [
            f"config.yaml:4: tools.{key}[1]: `exce` is no tool; {known}; nearest is `exec`",
            f"config.yaml:5: tools.{key}[2]: `WRTE` is no tool; {known}; nearest is `write`",
            f"config.yaml:7: tools.{key}[4]: `pdf*` is no tool; {known}",
            f"config.yaml:8: tools.{key}[5]: `group:sf` is no tool; {known}; nearest is `group:fs`",
        ]
        assert read(tmp_path, f"tools: {{{key}: ['*', Exec, r?ad, 'Group:Web', tracker_*]}}").tools

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("tools: {by_sender: {'telegram:1': {deny: [exce]}}}", "tools.by_sender.telegram:1.deny[0]"),
            ("tools: {require_approval: [exce]}", "tools.require_approval[0]"),
            ("channels: {slack: {tools: {allow: [exce]}}}", "channels.slack.tools.allow[0]"),
            (
                "channels: {telegram: {accounts: {b: {token: '1:b', tools: {deny: [exce]}}}}}",
                "channels.telegram.accounts.b.tools.deny[0]",
            ),
            (
                "channels: {telegram: {accounts: {b: {token: '1:b', groups: {allow: {-1: {tools: {deny: [exce]}}}}}}}}",
                "channels.telegram.accounts.b.groups.allow.-1.tools.deny[0]",
            ),
        ],
    )
    def test_names_of_tools_everywhere(self, tmp_path: Path, text: str, place: str) -> None:
        (mistake,) = mistakes(tmp_path, text)
        assert mistake.startswith(f"config.yaml:1: {place}: `exce` is no tool; allowed: ")
        assert mistake.endswith("nearest is `exec`")

    def test_whose_tools(self, tmp_path: Path) -> None:
        assert read(tmp_path, "tools: {by_sender: {'slack:*': {allow: []}}}").tools.by_sender["slack:*"].allow == ()
        assert "<platform>:<id>" in mistakes(tmp_path, "tools: {by_sender: {'me': {deny: [exec]}}}")[0]
        (profile,) = mistakes(tmp_path, "tools: {profile: all}")
        assert "minimal, guest, messaging, coding, full" in profile
        (of_sender,) = mistakes(tmp_path, "tools: {by_sender: {'slack:*': {profile: all}}}")
        assert "minimal, guest, messaging, coding, full" in of_sender

    @given(st.text(st.sampled_from("abc:-[]{}\"'#&*!|>%@`$ \n\t~?,.0"), max_size=40))
    def test_any_text_is_a_configuration_or_mistakes(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        folder = tmp_path_factory.getbasetemp()
        if _is_accepted(folder, text):
            return
        assert all(line.startswith("config.yaml:") for line in mistakes(folder, text))


def _is_accepted(folder: Path, text: str) -> bool:
    try:
        read(folder, text)
    except ConfigError:
        return False
    return True


def test_a_character_that_json_writes_as_two_escapes_is_one(tmp_path: Path) -> None:
    text = json.dumps({"agent": {"name": "Hark 👀"}, "channels": {"telegram": {"prompt": "👀 \ud83d"}}})
    config = read(tmp_path, text)
    assert config.agent.name == "Hark 👀"
    assert config.channels.telegram.prompt == "👀 \N{REPLACEMENT CHARACTER}"
