"""Reads the configuration: find the file, parse it, put variables in, check it, make folders absolute.

Promises to report every wrong key and value at once, each on one line with its place, then what does not go together,
and to show no secret while doing so. Called by the command line, once, before anything else starts.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from bot.config.checks import service_conflicts
from bot.config.document import Document, read_document
from bot.config.errors import ConfigError, Problem
from bot.config.explain import explain, path_of
from bot.config.folders import FOLDERS, allowed, folder_conflicts
from bot.config.model import Config

DEFAULT_NAME = "config.yaml"


def load(path: Path | None, environ: Mapping[str, str], cwd: Path, *, service: bool = False) -> Config:
    """The configuration in `path`, in the file HARK_CONFIG names, in `cwd`/config.yaml, or the defaults.

    `workspace` and `state` come back absolute: relative to the file, or to `cwd` when there is none.
    service: a service with a port is to be started with it, so what keeps that from starting counts as well.
    Raises ConfigError with every mistake, also when a file that was named cannot be read.
    """
    file = find_file(path, environ, cwd)
    if file is None:
        return _defaults(cwd)
    label = label_of(file, path, cwd)
    document = read_document(_read(file, label), environ, label)
    for name in FOLDERS:
        if (place := document.places.get((name,))) and place.written == "~" and not place.is_text:
            document.report(f"found `~`, which is nothing in YAML; {allowed(name)}", (name,))
    config = _absolute(_checked(document), file.parent)
    for folder, text in folder_conflicts(config.workspace, config.state, file, state_named="state" in document.tree):
        document.report(text, (folder,))
    for key, text in service_conflicts(config, environ) if service else ():
        document.report(text, key)
    document.refuse()
    return config


def find_file(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The absolute path of the file that `load` reads, or None when the defaults apply."""
    named = path or (Path(environ["HARK_CONFIG"]) if environ.get("HARK_CONFIG") else None)
    if named is not None:
        return cwd / os.path.expanduser(named)
    file = cwd / DEFAULT_NAME
    return file if file.exists() else None


def _defaults(cwd: Path) -> Config:
    """The configuration without a file. Raises ConfigError where its folders cannot be had, such as by a link."""
    config = _absolute(Config(), cwd)
    wrong = folder_conflicts(config.workspace, config.state, None, state_named=False)
    problems = tuple(Problem("without a configuration file", None, (folder,), text) for folder, text in wrong)
    if problems:
        raise ConfigError(problems)
    return config


def _checked(document: Document) -> Config:
    """What the document holds. Raises ConfigError; rules between keys count once every variable has its value."""
    try:
        config = Config.model_validate(document.tree)
    except ValidationError as refused:
        for error in refused.errors(include_url=False):
            here = path_of(error)
            if here not in document.unset and not (document.unset and error["type"] == "conflict"):
                path, text = explain(error, document.places.get(here), Config)
                document.report(text, path)
    document.refuse()
    return config


def _read(file: Path, label: str) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        problem = "not a text in UTF-8"
    except OSError as error:
        problem = f"cannot be read: {error.strerror or 'unknown error'}"
    raise ConfigError((Problem(label, None, (), problem),))


def label_of(file: Path, named: Path | None, cwd: Path) -> str:
    """The file as its owner would write it: as it was named, else relative to `cwd` where it can be."""
    if named is not None:
        return str(named)
    return str(file.relative_to(cwd)) if file.is_relative_to(cwd) else str(file)


def _absolute(config: Config, base: Path) -> Config:
    folders = {name: (base / os.path.expanduser(getattr(config, name))).resolve() for name in FOLDERS}
    return config.model_copy(update=folders)
