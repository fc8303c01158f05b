"""Which model answers, with what address and keys."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from agent.models.base import ModelSpec
from agent.models.price import Price
from bot.config.choose_model import beat_model, choose_model, probe_ollama
from bot.config.errors import ConfigError
from bot.config.load import load


def choose(tmp_path: Path, text: str = "", ollama: str | None = None, **environ: str) -> ModelSpec:
    (tmp_path / "config.yaml").write_text(text)
    return choose_model(load(None, environ, tmp_path), environ, lambda _: ollama)


def keys(chosen: ModelSpec) -> list[str]:
    return list(chosen.api_keys)


@pytest.mark.parametrize(
    ("environ", "ollama", "provider", "api"),
    [
        ({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, "llama", "anthropic", "anthropic"),
        ({"ANTHROPIC_API_KEY": " ", "OPENAI_API_KEY": "o"}, "llama", "openai", "openai-chat"),
        ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "llama", "ollama", "openai-chat"),
        ({}, None, "offline", "offline"),
    ],
)
def test_the_first_that_is_there_answers(
    tmp_path: Path, environ: dict[str, str], ollama: str | None, provider: str, api: str
) -> None:
    chosen = choose(tmp_path, ollama=ollama, **environ)
    assert (chosen.provider, chosen.api) == (provider, api)
    assert chosen.model
    assert chosen.context_window > 0


def test_the_environment_gives_key_and_address(tmp_path: Path) -> None:
    environ = {"ANTHROPIC_API_KEY": "sk-1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8/"}
    chosen = choose(tmp_path, **environ)
    assert (chosen.base_url, keys(chosen)) == ("http://127.0.0.1:8", ["sk-1"])
    assert "sk-1" not in repr(chosen)
    assert choose(tmp_path, OPENAI_API_KEY="k", OPENAI_BASE_URL="http://127.0.0.1:9/v1").base_url.endswith(":9/v1")


def test_the_file_wins_over_the_environment(tmp_path: Path) -> None:
    text = "providers: {anthropic: {base_url: 'http://127.0.0.1:7', api_keys: [one, two]}}"
    environ = {"ANTHROPIC_API_KEY": "sk-1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8"}
    chosen = choose(tmp_path, text, **environ)
    assert (chosen.base_url, keys(chosen)) == ("http://127.0.0.1:7", ["one", "two"])


def test_a_configured_provider_comes_before_the_environment(tmp_path: Path) -> None:
    text = """
providers:
  openai: {}
  shop: {api: openai-chat, base_url: http://127.0.0.1:9/v1, models: {own/model: {context_window: 4096}}}
"""
    chosen = choose(tmp_path, text, ANTHROPIC_API_KEY="a")
    assert (chosen.provider, chosen.model, chosen.context_window) == ("shop", "own/model", 4096)
    assert keys(chosen) == []


def test_a_key_goes_to_no_other_provider(tmp_path: Path) -> None:
    text = "agent: {model: shop/m}\nproviders: {shop: {api: openai-chat, base_url: 'http://127.0.0.1:9/v1'}}"
    chosen = choose(tmp_path, text, OPENAI_API_KEY="o", OPENAI_BASE_URL="http://127.0.0.1:1/v1")
    assert (chosen.base_url, keys(chosen)) == ("http://127.0.0.1:9/v1", [])


def test_a_named_model_with_its_settings(tmp_path: Path) -> None:
    text = """
agent: {model: openai/gpt-5.1, thinking: high}
providers:
  openai:
    models:
      gpt-5.1: {context_window: 10000, max_output: 500, vision: false, thinking: false, params: {seed: 1}}
"""
    chosen = choose(tmp_path, text, OPENAI_API_KEY="o", ANTHROPIC_API_KEY="a")
    assert (chosen.model, chosen.context_window, chosen.max_output) == ("gpt-5.1", 10000, 500)
    assert (chosen.vision, chosen.thinks, chosen.params) == (False, False, (("seed", 1),))
    thinking = choose(tmp_path, "agent: {model: openai/gpt-5.1, thinking: high}", OPENAI_API_KEY="o")
    assert (thinking.thinks, thinking.max_output) == (True, 8192)


@pytest.mark.parametrize("name", ["offline", "offline/offline"])
def test_offline_can_be_named(tmp_path: Path, name: str) -> None:
    chosen = choose(tmp_path, f"agent: {{model: {name}}}", ANTHROPIC_API_KEY="a")
    assert (chosen.provider, chosen.api, chosen.base_url) == ("offline", "offline", "")


def test_ollama_by_name_keeps_the_slashes_of_the_model(tmp_path: Path) -> None:
    chosen = choose(tmp_path, "agent: {model: ollama/hf.co/a/b:q4}")
    assert (chosen.model, chosen.base_url) == ("hf.co/a/b:q4", "http://127.0.0.1:11434/v1")


def test_a_named_model_without_its_key_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"agent\.model: .*providers\.openai\.api_keys or set OPENAI_API_KEY"):
        choose(tmp_path, "agent: {model: openai/gpt-5.1}", ANTHROPIC_API_KEY="a")
    with pytest.raises(ConfigError, match=r"agent\.model: .*providers\.shop\.api_keys$"):
        choose(tmp_path, "agent: {model: shop/m}\nproviders: {shop: {api: anthropic}}", ANTHROPIC_API_KEY="a")


class TestBeats:
    """Which model beats, and that a budget in money can be kept."""

    @staticmethod
    def beat(tmp_path: Path, text: str, ollama: str | None = None, **environ: str) -> ModelSpec | None:
        agent = choose(tmp_path, text, ollama, **environ)
        return beat_model(load(None, environ, tmp_path), environ, agent)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "agent: {model: openai/gpt-5.1, thinking: high}",
            "agent: {model: openai/gpt-5.1, thinking: high}\nheartbeat: {model: openai/gpt-5.1, thinking: high}",
            "providers: {openai: {models: {m: {thinking: false}}}}\nheartbeat: {thinking: high}",
            "agent: {model: offline}\nheartbeat: {model: offline}",
        ],
    )
    def test_that_of_the_agent_where_nothing_differs(self, tmp_path: Path, text: str) -> None:
        assert self.beat(tmp_path, text, OPENAI_API_KEY="o") is None
        assert self.beat(tmp_path, "", "llama") is None

    def test_another_model(self, tmp_path: Path) -> None:
        text = "agent: {thinking: high}\nheartbeat: {model: anthropic/claude-haiku}"
        beat = self.beat(tmp_path, text, OPENAI_API_KEY="o", ANTHROPIC_API_KEY="a")
        assert beat is not None
        assert (beat.name, keys(beat), beat.thinks) == ("anthropic/claude-haiku", ["a"], True)
        assert beat.why == "heartbeat.model names it"

    def test_a_model_without_its_key_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"heartbeat\.model: `anthropic/x` needs a key: .* set ANTHROPIC_API_KEY"):
            self.beat(tmp_path, "heartbeat: {model: anthropic/x}", OPENAI_API_KEY="o")

    def test_money_needs_the_price_of_the_model_that_beats(self, tmp_path: Path) -> None:
        prices = "providers: {openai: {models: {m: {price: {input: 3, output: 15}}, n: {}}}}\n"
        priced, unpriced = "heartbeat: {daily_budget: $2}", "heartbeat: {daily_budget: $2, model: openai/n}"
        assert self.beat(tmp_path, prices + priced, OPENAI_API_KEY="o") is None
        for text in (unpriced, f"{priced}\nagent: {{model: openai/n}}"):
            (tmp_path / "config.yaml").write_text(prices + text)
            with pytest.raises(ConfigError) as caught:
                load(None, {"OPENAI_API_KEY": "o"}, tmp_path, service=True)
            assert str(caught.value) == (
                "config.yaml:2: heartbeat.daily_budget: money needs the price of `openai/n`, which beats: write it at "
                "providers.openai.models.n.price, or give a number of tokens"
            )

    def test_the_price_goes_with_the_model(self, tmp_path: Path) -> None:
        text = "providers: {openai: {models: {m: {price: {input: 3, output: 15, cache_read: 0.3}}}}}"
        assert choose(tmp_path, text, OPENAI_API_KEY="o").price == Price(input=3, output=15, cache_read=0.3)
        assert choose(tmp_path, "agent: {model: openai/other}", OPENAI_API_KEY="o").price is None


class TestBudget:
    def test_money_needs_the_price_of_each_model_that_answers(self, tmp_path: Path) -> None:
        prices = "providers: {openai: {models: {m: {price: {input: 3, output: 15}}, n: {}}}}\n"
        budget = "budget: {bot: {tokens: 5, money: 2}}\n"
        environ = {"OPENAI_API_KEY": "o"}
        (tmp_path / "config.yaml").write_text(prices + budget)
        assert load(None, environ, tmp_path, service=True).budget.bot.money == 2
        for text in ("agent: {model: openai/n}", "heartbeat: {model: openai/n}"):
            (tmp_path / "config.yaml").write_text(prices + budget + text)
            with pytest.raises(ConfigError) as caught:
                load(None, environ, tmp_path, service=True)
            assert str(caught.value) == (
                "config.yaml:2: budget.bot.money: money needs the price of `openai/n`, which answers: write it at "
                "providers.openai.models.n.price, or limit the tokens"
            )


class TestProbe:
    @pytest.fixture
    def answer(self) -> dict[str, object]:
        return {"status": 200, "body": {"models": [{"name": "llama4:8b"}, {"name": "other"}]}}

    @pytest.fixture
    def url(self, answer: dict[str, object]) -> Iterator[str]:
        class Server(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status = answer["status"] if self.path == "/api/tags" else 404
                self.send_response(status if isinstance(status, int) else 500)
                self.end_headers()
                self.wfile.write(json.dumps(answer["body"]).encode())

            def log_message(self, *arguments: object) -> None:
                """Nothing is printed."""

        with HTTPServer(("127.0.0.1", 0), Server) as server:
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}/v1"
            server.shutdown()
            thread.join()

    def test_the_first_model_is_taken(self, url: str) -> None:
        assert probe_ollama(url) == "llama4:8b"

    def test_a_variant_of_ours_is_no_model(self, url: str, answer: dict[str, object]) -> None:
        answer["body"] = {"models": [{"name": "llama4:8b-hark16384"}, {"name": "llama4:8b"}]}
        assert probe_ollama(url) == "llama4:8b"

    @pytest.mark.parametrize("body", [{"models": []}, {"models": [{}]}, [], {"models": None}, "x"])
    def test_a_server_without_models_is_none(self, url: str, answer: dict[str, object], body: object) -> None:
        answer["body"] = body
        assert probe_ollama(url) is None

    def test_a_refusal_is_none(self, url: str, answer: dict[str, object]) -> None:
        answer["status"] = 503
        assert probe_ollama(url) is None

    def test_nobody_there_is_none(self) -> None:
        assert probe_ollama("http://127.0.0.1:1/v1") is None


class TestPrograms:
    def test_one_that_is_installed_answers(self, tmp_path: Path) -> None:
        (tmp_path / "claude").touch(0o755)
        text = "agent: {model: tool/sonnet}\nproviders: {tool: {api: cli, command: [claude]}}"
        chosen = choose(tmp_path, text, PATH=str(tmp_path))
        assert chosen.command is not None
        assert (chosen.api, chosen.model, chosen.thinks) == ("cli", "sonnet", True)
        assert chosen.command.home.parts[-2:] == ("cli", "tool")
        assert chosen.why == "agent.model names it; a program, which answers owners alone and calls no tool"

    def test_one_that_is_not_is_a_mistake_where_it_is_named(self, tmp_path: Path) -> None:
        providers = "providers: {tool: {api: cli, command: [claude]}}"
        with pytest.raises(
            ConfigError, match=r"agent\.model: `claude` is not installed, or not on PATH; write its path"
        ):
            choose(tmp_path, f"agent: {{model: tool/sonnet}}\n{providers}", PATH=str(tmp_path))
        assert choose(tmp_path, providers, PATH=str(tmp_path)).provider == "offline"

    def test_gemini_takes_no_level_of_thinking(self, tmp_path: Path) -> None:
        (tmp_path / "gemini").touch(0o755)
        chosen = choose(tmp_path, "providers: {tool: {api: cli, command: [gemini]}}", PATH=str(tmp_path))
        assert (chosen.name, chosen.thinks) == ("tool/default", False)
