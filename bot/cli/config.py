"""`hark config check|schema|get|set`: look at the configuration, or change it, without starting anything.

Every function prints and gives an exit code; a file that cannot be used raises ConfigError, which the
command line shows.
"""

import json
import os
from pathlib import Path

import typer

from bot.config.assumed import look_up
from bot.config.checks import warnings
from bot.config.errors import dotted
from bot.config.file import ConfigFile
from bot.config.load import find_file, label_of, load
from bot.config.model import Config
from bot.config.secrets import secrets
from bot.config.shown import value_at
from bot.telemetry.redact import Redactor


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
    typer.echo(Redactor(secrets(config, config.environ(os.environ))).clean(value_at(config, key)))
    return 0


def change(path: Path | None, key: str, value: str) -> int:
    """Write a value, as YAML has it, at the dotted `key` of the file; a service that runs takes it over.

    Raises ConfigError, and changes nothing, when the file would not load then.
    """
    file = ConfigFile(path, os.environ, Path.cwd())
    try:
        changed = file.change(key, value)
    except OSError as error:
        typer.echo(f"{file.path} cannot be written: {error.strerror or error}", err=True)
        return 1
    typer.echo(f"{dotted(changed)} is set in {file.path}")
    return 0
