"""`hark config check|schema|get`: look at the configuration without starting anything.

Every function prints and gives an exit code; a file that cannot be used raises ConfigError, which the
command line shows.
"""

import json
import os
from pathlib import Path

import typer
from pydantic import JsonValue

from bot.config.assumed import look_up
from bot.config.checks import warnings
from bot.config.errors import ConfigError, KeyPath, Problem
from bot.config.explain import is_secret, unknown_key
from bot.config.load import find_file, label_of, load
from bot.config.model import Config
from bot.config.secrets import secrets
from bot.telemetry.redact import STARS, Redactor, mask_url


def check(path: Path | None) -> int:
    """Say that the configuration holds no mistake, or raise ConfigError with all of them."""
    cwd = Path.cwd()
    config = load(path, os.environ, cwd, service=True)
    file = find_file(path, os.environ, cwd)
    found = f"{label_of(file, path, cwd)}: no mistakes" if file else "no configuration file: the defaults apply"
    typer.echo(found)
    look_up(config)
    for key in config.source.referred.commands:
        typer.echo(f"{key}: its command ran and gave a value")
    for warning in warnings(config):
        typer.echo(f"warning: {warning}")
    return 0


def schema() -> int:
    """Print the JSON schema of the configuration file."""
    typer.echo(json.dumps(Config.model_json_schema(), indent=2))
    return 0


def get(path: Path | None, key: str | None) -> int:
    """Print the value in effect at the dotted `key`: a text as it is, everything else as JSON.

    Secrets appear as stars, those inside URLs too. Raises ConfigError for a key that does not exist.
    """
    config = load(path, os.environ, Path.cwd())
    tree = _shown(config.model_dump(mode="json", by_alias=True), ())
    value = tree if key is None else _at(tree, key, key)
    shown = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(Redactor(secrets(config, config.environ(os.environ))).clean(shown))
    return 0


def _shown(value: JsonValue, path: KeyPath) -> JsonValue:
    """The value at `path` with stars in place of what may be a secret."""
    if isinstance(value, dict):
        return {name: _shown(below, (*path, name)) for name, below in value.items()}
    if isinstance(value, list):
        return [_shown(below, (*path, number)) for number, below in enumerate(value)]
    if not isinstance(value, str):
        return value
    return STARS if is_secret(path) else mask_url(value)[0]


def _at(tree: JsonValue, rest: str, key: str) -> JsonValue:
    """The value at `rest` below `tree`. Model ids hold dots, so the longest key that fits is taken first."""
    if not rest:
        return tree
    names = tree if isinstance(tree, dict) else {}
    for name in sorted(names, key=len, reverse=True):
        if rest == name or rest.startswith(f"{name}."):
            return _at(names[name], rest[len(name) + 1 :], key)
    raise ConfigError((Problem("hark config get", None, (key,), unknown_key(rest.partition(".")[0], names)),))
