"""What is assumed of models, because neither the configuration nor the name of their provider says it."""

from collections.abc import Iterator, Sequence

from agent.models.base import ModelSpec
from agent.models.compat import is_ollama
from bot.config import price_book
from bot.config.choose_model import as_written
from bot.config.model import Config
from bot.config.providers import BUILT_IN_PROVIDERS, ModelSettings


def look_up(config: Config) -> None:
    """Look for the prices that the configuration does not have, which takes a second if there are any."""
    price_book.look_up(_specs(config))


def assumed(config: Config) -> Iterator[str]:
    """Yield a sentence for each model of the configuration of which something is assumed: what, and what to write.

    A price that nobody has looked for yet is not missed.
    """
    for spec in _specs(config):
        written = config.providers[spec.provider].models if spec.provider in config.providers else {}
        settings, missing = written.get(spec.model, ModelSettings()), {}
        known = spec.provider in BUILT_IN_PROVIDERS
        if not (known or settings.context_window):
            missing["context_window"] = f"a window of {spec.context_window:,} tokens"
        if not (known or settings.max_output):
            missing["max_output"] = f"a limit of output of {spec.max_output:,}"
        if price_book.is_missing(spec):
            missing["price"] = "no price, so that it counts for nothing in money"
        if missing:
            where = f"providers.{spec.provider}.models.{spec.model}"
            yield f"of `{spec.name}` is assumed: {', '.join(missing.values())}; write {', '.join(missing)} at {where}"


def _specs(config: Config) -> Sequence[ModelSpec]:
    """Return the models of the configuration that could be unknown; Ollama says by itself what it has."""
    listed = [f"{name}/{model}" for name, provider in config.providers.items() for model in provider.models]
    names = dict.fromkeys([name for _, name in config.models() if name] + listed)
    specs = [as_written(config, name) for name in names]
    return [spec for spec in specs if spec.api not in ("cli", "offline") and not is_ollama(spec)]
