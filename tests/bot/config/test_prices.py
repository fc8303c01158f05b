"""Prices: those of the configuration, else those of the package genai-prices."""

import pytest

from agent.message import Usage
from agent.models.base import ModelSpec
from agent.models.price import Price
from bot.config import price_book
from bot.config.model import Config
from bot.config.prices import Prices, unpriced

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


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_book, "_found", {})


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
