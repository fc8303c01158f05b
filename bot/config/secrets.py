"""The secrets that this process knows, so that they can be kept out of logs, of its environment and of transcripts."""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, SecretStr

from bot.config.choose_model import environment_secrets
from bot.config.model import Config
from bot.telemetry.redact import mask_url


def secrets(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Every secret of the configuration, those inside URLs too, and of the environment it reads."""
    keys, urls = environment_secrets(environ)
    return [*keys, *(secret for value in (config, *urls) for secret in _within(value))]


def _within(value: object) -> Iterator[str]:
    """The secrets in a value of the configuration, found by their type."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str) and not any(map(str.isspace, value)):
        yield from mask_url(value)[1]
    elif isinstance(value, BaseModel):
        yield from _within(vars(value))
    elif isinstance(value, Mapping):
        yield from _within(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for below in value:
            yield from _within(below)
