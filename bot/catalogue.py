"""The models of a service: those that its configuration chooses, and any other of its providers that people choose."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent import models
from agent.errors import ErrorKind
from agent.models.base import ModelClient, ModelSpec
from agent.models.fleet import Fallback
from bot.config.choose_model import Probe, beat_model, choose_model, fallback_models, named_model
from bot.config.errors import ConfigError, Problem
from bot.config.model import Config
from bot.config.prices import unpriced
from bot.config.secrets import secrets
from bot.telemetry.masked import MaskedClient
from bot.telemetry.payloads import LoggedClient, PayloadLog
from bot.telemetry.redact import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Which models there are."""

    config: Config
    environ: Mapping[str, str]
    # The model that answers, and the one of beats.
    chosen: ModelSpec
    beating: ModelSpec
    # The models of `agent.fallbacks`, in their order.
    fallbacks: Sequence[ModelSpec]
    # Answers in place of every model, where it is set.
    given: ModelClient | None
    # Knows the secrets of the configuration and the environment.
    redactor: Redactor
    # Writes all calls down, where that is wanted.
    payloads: PayloadLog | None

    def find(self, name: str) -> ModelSpec:
        """Return a model by its name, `provider/model`. Raises LookupError when it cannot be asked."""
        if self.given is not None and name == self.given.name:
            return self.chosen
        known = {one.name: one for one in (*self.fallbacks, self.beating, self.chosen)}
        return known.get(name) or named_model(self.config, self.environ, name)

    def clients(self, name: str) -> Sequence[ModelClient]:
        """Make the clients of a model, one for each key. Raises LookupError when it cannot be asked."""
        if self.given is not None:
            found = [self.given]
        else:
            spec = self.find(name)
            found = [models.build(replace(spec, api_keys=(key,))) for key in spec.api_keys] or [models.build(spec)]
        found = [LoggedClient(one, self.payloads) for one in found] if self.payloads else found
        return [MaskedClient(one, self.redactor) for one in found]

    def stand_ins(self) -> Sequence[Fallback]:
        """Return the models that stand in for others, with the failures for which they do."""
        pairs = zip(self.config.agent.fallbacks, self.fallbacks, strict=True)
        return [Fallback(spec.name, _kinds(one.on)) for one, spec in pairs]

    def offered(self) -> tuple[str, ...]:
        """Return the names of the models that the configuration names, beginning with the one that answers."""
        named = [f"{name}/{model}" for name, provider in self.config.providers.items() for model in provider.models]
        return tuple(dict.fromkeys((self.chosen.name, *(one.name for one in self.fallbacks), *named)))


def choose(config: Config, environ: Mapping[str, str], probe: Probe, given: ModelClient | None) -> Catalogue:
    """Return the models of a configuration; asks a local Ollama server where nothing else is configured.

    given: see `Catalogue`. Raises ConfigError when a model cannot be asked, or a budget of money has no price.
    """
    chosen = choose_model(config, environ, probe)
    chosen = replace(chosen, why="given") if given else chosen
    beating, fallbacks = beat_model(config, environ, chosen), fallback_models(config, environ)
    _check_prices(config, filter(None, (chosen, beating, *fallbacks)))
    log, most = config.telemetry, config.telemetry.payload_megabytes * 1_000_000
    redactor = Redactor(secrets(config, environ))
    return Catalogue(
        config=config,
        environ=environ,
        chosen=chosen,
        beating=beating or chosen,
        fallbacks=fallbacks,
        given=given,
        redactor=redactor,
        payloads=PayloadLog(config.state, redactor, most) if log.payloads else None,
    )


def again(known: Catalogue, config: Config) -> Catalogue:
    """Return the models by a configuration with other fallbacks, beats or budgets, and the same providers.

    Raises ConfigError when a model cannot be asked, or a budget of money has no price. Blocks for a second.
    """
    fallbacks = fallback_models(config, known.environ)
    if known.given is None:
        beat_model(config, known.environ, known.chosen)
    _check_prices(config, (known.chosen, known.beating, *fallbacks))
    return replace(known, config=config, fallbacks=fallbacks)


def _check_prices(config: Config, specs: Iterable[ModelSpec]) -> None:
    for one in specs:
        if found := tuple(unpriced(config, one)):
            raise ConfigError(tuple(Problem("configuration", None, key, text) for key, text in found))


def _kinds(names: Sequence[str]) -> Container[ErrorKind]:
    return tuple(ErrorKind) if "all" in names else tuple(map(ErrorKind, names))
