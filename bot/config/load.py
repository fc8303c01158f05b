"""Reads the configuration: find the file, parse it, put variables in, check it, make folders absolute.

Promises to report every mistake at once, each on one line with its place, and to show no secret while doing
so. Called by the command line, once, before anything else starts.
"""

from collections.abc import Mapping
from pathlib import Path

from bot.config.checks import folder_conflicts, service_conflicts
from bot.config.document import Document, read_document, without
from bot.config.errors import ConfigError, Problem
from bot.config.explain import errors_of, explain, path_of
from bot.config.model import Config

DEFAULT_NAME = "config.yaml"

_LARGEST = 200_000
"""Bytes of a configuration file: the reader of YAML is slow, and a wrong file should be told at once."""


def load(path: Path | None, environ: Mapping[str, str], cwd: Path, *, service: bool = False) -> Config:
    """The configuration in `path`, in the file HARK_CONFIG names, in `cwd`/config.yaml, or the defaults.

    `workspace` and `state` come back absolute: relative to the file, or to `cwd` when there is none.
    service: a service with a port is to be started with it, so what keeps that from starting counts as well.
    Raises ConfigError with every mistake, also when a file that was named cannot be read.
    """
    file = find_file(path, environ, cwd)
    if file is None:
        return _absolute(Config(), cwd, environ)
    label = label_of(file, path, cwd)
    document = read_document(_read(file, label), environ, label)
    config = _check(document, file, environ, service)
    if document.problems:
        order = {key: number for number, key in enumerate(document.places)}
        found = set(document.problems)
        raise ConfigError(tuple(sorted(found, key=lambda p: (p.line or 0, order.get(p.key, -1), p.text))))
    return config


def find_file(path: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The absolute path of the file that `load` reads, or None when the defaults apply."""
    named = path or (Path(environ["HARK_CONFIG"]) if environ.get("HARK_CONFIG") else None)
    if named is not None:
        return cwd / _at_home(named, environ)
    file = cwd / DEFAULT_NAME
    return file if file.exists() else None


def _check(document: Document, file: Path, environ: Mapping[str, str], service: bool) -> Config:
    """Report every mistake. What is wrong is taken out until the rest holds, which is returned, so that rules
    between keys are still checked in a file that has a wrong value elsewhere."""
    tree = document.tree
    while errors := errors_of(Config, tree):
        paths = []
        for error in errors:
            here = path_of(error)
            path, text = explain(error, document.places.get(here), Config)
            document.report(text, path, *((*here, *key) for key in error.get("ctx", {}).get("read", ())))
            paths.append(path)
        without(tree, paths)
        document.wrong.update(paths)
    config = _absolute(Config.model_validate(tree), file.parent, environ)
    for found in (*folder_conflicts(config, file), *(service_conflicts(config, environ) if service else ())):
        context = found.context or {}
        document.report(context["text"], context["at"], *context["read"])
    return config


def _read(file: Path, label: str) -> str:
    try:
        if file.exists() and not file.is_file() and not file.is_dir():
            problem = "not an ordinary file"
        elif file.is_file() and file.stat().st_size > _LARGEST:
            problem = f"larger than {_LARGEST // 1000} kB, which no configuration is"
        else:
            return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        problem = "not a text in UTF-8"
    except FileNotFoundError:
        problem = "there is no such file"
    except OSError as error:
        problem = f"cannot be read: {error.strerror or 'unknown error'}"
    raise ConfigError((Problem(label, None, (), problem),))


def label_of(file: Path, named: Path | None, cwd: Path) -> str:
    """The file as its owner would write it: as it was named, else relative to `cwd` where it can be."""
    if named is not None:
        return str(named)
    return str(file.relative_to(cwd)) if file.is_relative_to(cwd) else str(file)


def _absolute(config: Config, base: Path, environ: Mapping[str, str]) -> Config:
    folders = {name: (base / _at_home(getattr(config, name), environ)).resolve() for name in ("workspace", "state")}
    return config.model_copy(update=folders)


def _at_home(path: Path, environ: Mapping[str, str]) -> Path:
    """Resolve a leading `~` by HOME; another user's `~name` stays as it is."""
    home = environ.get("HOME")
    return Path(home, *path.parts[1:]) if home and path.parts[:1] == ("~",) else path
