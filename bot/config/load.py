"""Reads the configuration: find the file, parse it, put in what stands elsewhere, check it, make folders
absolute.

Promises to report every wrong key and value at once, each on one line with its place, then what does not go together,
and to show no secret while doing so. Called by the command line, once, before anything else starts.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bot.config.checks import service_conflicts
from bot.config.document import VARIABLES, Document, read_document, read_text, read_variables
from bot.config.errors import ConfigError, KeyPath, Problem
from bot.config.explain import explain, path_of
from bot.config.extensions import prepare
from bot.config.folders import FOLDERS, allowed, folder_conflicts
from bot.config.model import Config, Source, shaped
from bot.config.references import put_in

DEFAULT_NAME = "config.yaml"


def load(
    path: Path | None, environ: Mapping[str, str], cwd: Path, *, service: bool = False, text: str | None = None
) -> Config:
    """The configuration in `path`, in the file HARK_CONFIG names, in `cwd`/config.yaml, or the defaults.

    `workspace` and `state` come back absolute: relative to the file, or to `cwd` when there is none.
    service: a service with a port is to be started with it, so what keeps that from starting counts as well.
    text: stands in the place of what the file holds. Raises ConfigError with every mistake, also when a file that was
    named cannot be read.
    """
    config, document = examine(path, environ, cwd, text)
    environ, faulty = config.environ(environ), {_section(one.key) for one in document.problems if one.key}
    if (
        service
        and document.file
        and not faulty & {("gateway",), ("tools",), ("agent",), ("providers",), ("heartbeat",), ("budget",)}
    ):
        for key, text in service_conflicts(config, environ):
            document.report(text, key)
    try:
        document.refuse()
    except ConfigError as error:
        error.files = config.source.files
        raise
    return config


def examine(
    path: Path | None, environ: Mapping[str, str], cwd: Path, text: str | None = None
) -> tuple[Config, Document]:
    """The same with whatever mistakes it has, for who looks into it: what holds, and what is written with its mistakes.

    text: see `load`. Raises ConfigError where a file cannot be read, or where nothing holds without a file.
    """
    file = find_file(path, environ, cwd)
    beside = (file.parent if file else cwd) / VARIABLES
    variables = read_variables(beside, label_of(beside, None, cwd))
    source = Source((file, beside) if file else (beside,), variables)
    if file is None:
        return _defaults(cwd).of(source), Document("")
    environ, label = {**variables, **environ}, label_of(file, path, cwd)
    document = read_document(read_text(file, label) if text is None else text, environ, label)
    referred = put_in(document, environ, file.parent)
    source = replace(source, files=(*source.files, *referred.files), referred=referred)
    for name in FOLDERS:
        if (place := document.places.get((name,))) and place.written == "~" and not place.is_text:
            document.report(f"found `~`, which is nothing in YAML; {allowed(name)}", (name,))
    config, faulty = _checked(document)
    config = _absolute(config, file.parent)
    if not faulty & {("workspace",), ("state",)}:
        named = "state" in document.tree
        for folder, text in folder_conflicts(config.workspace, config.state, file, state_named=named):
            document.report(text, (folder,))
    return config.of(source), document


def state_of(file: Path, environ: Mapping[str, str]) -> Path | None:
    """The state folder that a file names, whatever is wrong with the rest of it; None where that cannot be told."""
    try:
        document = read_document(read_text(file, file.name), environ, file.name)
    except ConfigError:
        return None
    state = document.tree.get("state", Config().state.name)
    return (file.parent / os.path.expanduser(state)).resolve() if isinstance(state, str) else None


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


def _checked(document: Document) -> tuple[Config, set[KeyPath]]:
    """What the document holds but for the sections in which something is faulty, and these; mistakes are reported.

    What is faulty is left out and the rest is looked at again, until it holds. A rule between keys is passed over where
    one of them is faulty: it would only follow from that.
    """
    extensions, checked = prepare(document.tree)
    tree, shape = dict(checked), shaped(extensions.names)
    faulty = set(map(_section, document.unset))
    while True:
        try:
            return shape.model_validate(tree), faulty
        except ValidationError as refused:
            errors = [(path_of(error), error) for error in refused.errors(include_url=False)]
        known = set(faulty)
        for here, error in errors:
            path, text = explain(error, document.places.get(here), shape)
            concerned = {_section(path)} if here else {_section(path), ("providers",)}
            if here not in document.unset and not (error["type"] == "conflict" and known & concerned):
                document.report(text, path)
            faulty.add(_section(path))
            tree = _without(tree, _section(path))


def _section(path: KeyPath) -> KeyPath:
    """What stands by itself: a channel, or a section of the configuration."""
    return path[: 2 if path[0] == "channels" else 1]


def _without(tree: Any, section: KeyPath) -> Any:
    """A tree without one of its sections."""
    key, below = section[0], section[1:]
    if below and isinstance(tree.get(key), dict):
        return {**tree, key: _without(tree[key], below)}
    return {name: value for name, value in tree.items() if name != key}


def label_of(file: Path, named: Path | None, cwd: Path) -> str:
    """The file as its owner would write it: as it was named, else relative to `cwd` where it can be."""
    if named is not None:
        return str(named)
    return str(file.relative_to(cwd)) if file.is_relative_to(cwd) else str(file)


def _absolute(config: Config, base: Path) -> Config:
    folders = {name: (base / os.path.expanduser(getattr(config, name))).resolve() for name in FOLDERS}
    return config.model_copy(update=folders)
