"""What models cost, as far as it is known, and whether budgets of money can be kept."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import structlog

from agent.message import Usage
from agent.models.base import ModelSpec
from agent.models.price import Price
from bot.config import price_book
from bot.config.errors import KeyPath
from bot.config.model import Config

log = structlog.get_logger()

_NOTHING = Price(input=0, output=0)


class Prices:
    """The prices of models by their names."""

    def __init__(self, find: Callable[[str], ModelSpec]) -> None:
        """find: returns a model by its name, or raises LookupError."""
        self._find = find
        self._written: dict[str, Price | None] = {}

    def of(self, model: str) -> Price | None:
        """Return the price of a model, of the configuration or else of `price_book`; None if it is not known."""
        if model not in self._written:
            try:
                spec = self._find(model)
                self._written[model] = _NOTHING if spec.api == "offline" else spec.price
            except LookupError:
                self._written[model] = None
        return self._written[model] or price_book.found.get(model)

    def look_up(self, models: Iterable[str]) -> None:
        """Look for the prices of models, by their names, that the configuration does not have. Blocks."""
        specs = []
        for model in models:
            with suppress(LookupError):
                specs.append(self._find(model))
        looked_for = [spec for spec in specs if not price_book.is_missing(spec)]
        price_book.look_up(specs)
        for spec in filter(price_book.is_missing, looked_for):
            log.warning("no price of a model is known", model=spec.name)

    def shown(self, model: str) -> str:
        """Return the price of a model and where it is from, in words for people; empty if it is not known."""
        price = self.of(model)
        if price is None or not (price.input or price.output):
            return ""
        source = "the configuration" if self._written[model] else "genai-prices"
        return f"${price.input:g} for a million tokens of input, ${price.output:g} of output, from {source}"

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return the US dollars that so many tokens of a model cost; None if no price is known."""
        price = self.of(model)
        return price.cost(usage) if price else None

    def most(self, model: str, usage: Usage) -> float | None:
        """Return the US dollars that they cost if all input is written to the cache, or none; None as for `cost`."""
        price = self.of(model)
        written = Usage(usage.input, usage.output, cache_write=usage.input)
        return max(price.cost(usage), price.cost(written)) if price else None


def price_of(spec: ModelSpec) -> Price | None:
    """Return the price of a model, which may take a second; the built-in one costs nothing."""
    if spec.api == "offline":
        return _NOTHING
    if spec.price is None:
        price_book.look_up((spec,))
    return spec.price or price_book.found.get(spec.name)


def unpriced(config: Config, spec: ModelSpec) -> Iterator[tuple[KeyPath, str]]:
    """Yield the budgets of money that cannot be kept because the price of a model that answers is not known."""
    limited = [scope for scope, limit in config.budget.limits().items() if limit.money is not None]
    if not limited or price_of(spec) is not None:
        return
    where = f"providers.{spec.provider}.models.{spec.model}.price"
    for scope in limited:
        text = f"money needs the price of `{spec.name}`, which answers: write it at {where}, or limit the tokens"
        yield ("budget", scope, "money"), text
