"""What models cost, as far as it is known, and whether budgets of money can be kept."""

from collections.abc import Callable, Iterator

from agent.message import Usage
from agent.models.base import ModelSpec
from agent.models.price import Price
from bot.config.errors import KeyPath
from bot.config.model import Config

_NOTHING = Price(input=0, output=0)


class Prices:
    """The prices of models by their names."""

    def __init__(self, find: Callable[[str], ModelSpec]) -> None:
        """find: returns a model by its name, or raises LookupError."""
        self._find = find
        self._known: dict[str, Price | None] = {}

    def of(self, model: str) -> Price | None:
        """Return the price of a model; None if it is not known."""
        if model not in self._known:
            try:
                self._known[model] = price_of(self._find(model))
            except LookupError:
                self._known[model] = None
        return self._known[model]

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
    """Return the price of a model; the built-in one costs nothing."""
    return _NOTHING if spec.api == "offline" else spec.price


def unpriced(config: Config, spec: ModelSpec) -> Iterator[tuple[KeyPath, str]]:
    """Yield the budgets of money that cannot be kept because the price of a model that answers is not known."""
    if price_of(spec) is not None:
        return
    where = f"providers.{spec.provider}.models.{spec.model}.price"
    for scope, limit in config.budget.limits().items():
        if limit.money is not None:
            text = f"money needs the price of `{spec.name}`, which answers: write it at {where}, or limit the tokens"
            yield ("budget", scope, "money"), text
