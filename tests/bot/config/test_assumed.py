"""What is said of models that nobody knows: what is assumed of them, and which keys say otherwise."""

from pathlib import Path
from typing import Any

import pytest
import structlog

from agent.message import Usage
from agent.models.base import ModelApi, ModelSpec
from agent.models.price import Price
from bot.config import price_book
from bot.config.assumed import assumed, look_up
from bot.config.checks import service_conflicts
from bot.config.choose_model import as_written, choose_model
from bot.config.model import Config
from bot.config.params import fields, refused
from bot.config.prices import Prices, unpriced
from tests.bot.config.test_cli import hark
from tests.bot.config.test_load import read

ALL = (
    "of `house/large` is assumed: a window of 128,000 tokens, a limit of output of 8,192, "
    "no price, so that it counts for nothing in money; "
    "write context_window, max_output, price at providers.house.models.large"
)
HOUSE = "providers: {house: {api: openai-chat, base_url: 'http://127.0.0.1:8000/v1', models: {%s}}}"


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_book, "found", {})


def said(tmp_path: Path, text: str) -> list[str]:
    return list(assumed(read(tmp_path, text)))


@pytest.mark.parametrize(
    "chosen",
    [
        "agent: {model: house/large}",
        "agent: {fallbacks: [{model: house/large}]}",
        "heartbeat: {model: house/large}",
        "compaction: {model: house/large}",
        "channels: {telegram: {token: '1:x', groups: {allow: {'-1': {model: house/large}}}}}",
    ],
)
def test_a_model_of_an_unknown_provider(tmp_path: Path, chosen: str) -> None:
    assert said(tmp_path, f"{chosen}\n{HOUSE % ''}") == [ALL]
    assert said(tmp_path, f"{chosen}\n{HOUSE % 'large: {}'}") == [ALL], "once"


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("context_window: 1024", ["a limit of output of 256", "no price"]),
        ("context_window: 1024, max_output: 9", ["no price"]),
        ("max_output: 9, price: {input: 1, output: 1}", ["a window of 128,000"]),
        ("context_window: 1024, max_output: 9, price: {input: 0, output: 0}", []),
    ],
)
def test_what_is_written_is_not_missed(tmp_path: Path, written: str, left: list[str]) -> None:
    found = said(tmp_path, HOUSE % f"large: {{{written}}}")
    assert len(found) == bool(left)
    assert [one in found[0] for one in left] == [True for _ in left]
    assert "".join(found).count("a window") == sum("window" in one for one in left)


def test_known_providers_ollama_and_programs_are_known(tmp_path: Path) -> None:
    providers = "providers: {local: {api: openai-chat, base_url: 'http://127.0.0.1:11434/v1', models: {qwen: {}}}}"
    assert said(tmp_path, providers) == []
    for name in ("offline", "ollama/qwen3", "openai/gpt-6.1-terra"):
        assert said(tmp_path, f"agent: {{model: {name}}}") == []
    assert said(tmp_path, "providers: {claude: {api: cli, command: [claude], models: {opus: {}}}}") == []


def test_a_price_is_missed_once_it_was_looked_for(tmp_path: Path) -> None:
    for model, missed in (("gpt-nonsense", True), ("gpt-5.1", False)):
        config = read(tmp_path, f"agent: {{model: openai/{model}}}")
        assert list(assumed(config)) == []
        look_up(config)
        assert [one.startswith("of `openai/gpt-nonsense` is assumed: no price") for one in assumed(config)] == (
            [True] if missed else []
        )


def test_the_service_says_which_prices_it_does_not_find() -> None:
    config = Config.model_validate({"agent": {"model": "openai/gpt-nonsense"}})
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            Prices(lambda name: as_written(config, name)).look_up(
                ["openai/gpt-nonsense", "openai/gpt-5.1", "offline/x"]
            )
    assert [(one["event"], one["model"]) for one in logs] == [("no price of a model is known", "openai/gpt-nonsense")]


def test_the_check_says_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"agent: {{model: openai/gpt-nonsense}}\n{HOUSE % 'large: {}'}")
    done = hark(tmp_path, "config", "check", OPENAI_API_KEY="sk-1")
    assert (done.code, f"warning: {ALL}\n" in done.out) == (0, True)
    assert "warning: of `openai/gpt-nonsense` is assumed: no price" in done.out


# Which `params` of models are refused, and in which words.


@pytest.mark.parametrize(
    ("api", "base_url", "params", "said"),
    [
        ("anthropic", "", {"temperature": 0.5, "top_p": 0.9}, []),
        ("anthropic", "", {"temprature": 1}, ["no such field; nearest is `temperature`"]),
        ("anthropic", "https://api.anthropic.com", {"frequency_penalty": 1}, ["no such field; allowed: "]),
        ("openai-chat", "", {"frequency_penalty": 1, "seed": 3}, []),
        ("openai-chat", "", {"top_k": 3}, ["no such field"]),
        ("openai-chat", "http://127.0.0.1:8000/v1", {"top_k": 3}, []),
        ("openai-chat", "http://127.0.0.1:8000/v1", {"max_tokens": 3}, ["write `max_output`"]),
        ("openai-responses", "", {"truncation": "auto"}, []),
        ("openai-responses", "", {"store": True}, ["Hark sets this field itself"]),
        ("openai-responses", "", {"seed": 3}, ["no such field"]),
    ],
)
def test_what_is_refused(api: ModelApi, base_url: str, params: dict[str, object], said: list[str]) -> None:
    found = [text for _, text in refused(api, base_url, params)]
    assert len(found) == len(said)
    assert all(words in text for words, text in zip(said, found, strict=True))


def test_the_fields_of_each_sdk_are_found() -> None:
    apis: tuple[ModelApi, ...] = ("anthropic", "openai-chat", "openai-responses")
    assert all("temperature" in fields(api) and len(fields(api)) > 8 for api in apis)


def test_it_is_said_where_they_stand() -> None:
    written: dict[str, Any] = {"providers": {"openai": {"models": {"gpt-6.1-terra": {"params": {"top_k": 1}}}}}}
    ((key, text),) = service_conflicts(Config.model_validate(written), {"OPENAI_API_KEY": "k"})
    assert key == ("providers", "openai", "models", "gpt-6.1-terra", "params", "top_k")
    assert "no such field" in text


def test_openai_by_its_other_api_takes_its_key_from_the_environment() -> None:
    written: dict[str, Any] = {
        "agent": {"model": "openai/gpt-6.1-terra"},
        "providers": {"openai": {"api": "openai-responses"}},
    }
    spec = choose_model(Config.model_validate(written), {"OPENAI_API_KEY": "k"}, lambda _: None)
    assert (spec.api, spec.api_keys, spec.base_url) == ("openai-responses", ("k",), "https://api.openai.com/v1")


# Prices: those of the configuration, else those of the package genai-prices.

MODELS = {
    "anthropic/claude-sonnet-4-5": None,
    "openai/gpt-5.1": Price(input=1, output=2),
    "anthropic/claude-nonsense": None,
    "house/claude-sonnet-4-5": None,
}


def find(name: str) -> ModelSpec:
    provider, _, model = name.partition("/")
    if name not in MODELS:
        raise LookupError(name)
    return ModelSpec(provider=provider, api="anthropic", model=model, price=MODELS[name])


def test_what_is_found_and_where() -> None:
    prices = Prices(find)
    assert prices.cost("anthropic/claude-sonnet-4-5", Usage(1_000_000)) is None, "before anybody has looked"
    prices.look_up([*MODELS, "gone/model"])
    assert prices.cost("anthropic/claude-sonnet-4-5", Usage(1_000_000, 1_000_000)) == pytest.approx(18)
    assert prices.cost("anthropic/claude-sonnet-4-5", Usage(1_000_000, 0, 1_000_000)) == pytest.approx(0.3)
    assert prices.shown("anthropic/claude-sonnet-4-5").endswith("from genai-prices")
    assert prices.shown("openai/gpt-5.1") == (
        "$1 for a million tokens of input, $2 of output, from the configuration"
    ), "what is written wins"
    for unknown in ("anthropic/claude-nonsense", "house/claude-sonnet-4-5"):
        assert prices.cost(unknown, Usage(1_000_000)) is None
        assert prices.shown(unknown) == ""


def test_a_budget_of_money_needs_a_price_and_a_known_model_has_one() -> None:
    config = Config.model_validate({"budget": {"bot": {"money": 1}}})
    assert list(unpriced(config, find("anthropic/claude-sonnet-4-5"))) == []
    ((key, _),) = unpriced(config, find("house/claude-sonnet-4-5"))
    assert key == ("budget", "bot", "money")


def test_without_the_package_no_price_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_book, "_PROGRAM", "raise SystemExit(1)")
    prices = Prices(find)
    prices.look_up(MODELS)
    assert prices.cost("anthropic/claude-sonnet-4-5", Usage(1_000_000)) is None
