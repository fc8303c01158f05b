"""The configuration file of a service: loaded again, looked at for changes, and changed key by key.

Changing keeps comments and order of what is written, and writes nothing that would not load.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from tempfile import mkstemp

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from bot.config.document import VARIABLES, mark_variables, read_text
from bot.config.errors import ConfigError, KeyPath, Problem, dotted
from bot.config.load import DEFAULT_NAME, find_file, label_of, load
from bot.config.model import Config

# What tells whether a file was changed, replaced, removed or made: None where there is none.
Sign = tuple[int, int, int] | None


@dataclass(eq=False, slots=True)
class ConfigFile:
    """How a service finds its configuration: as it was named at the start, or not."""

    named: Path | None
    # The environment that the process was started with.
    environ: Mapping[str, str] = field(repr=False)
    # The folder in which it was started.
    cwd: Path
    # The signs of the files of the last `load`, as they were before it.
    seen: Mapping[Path, Sign] = field(default_factory=dict, init=False)

    @property
    def path(self) -> Path:
        """The file that is read, or that would be if it were there."""
        return find_file(self.named, self.environ, self.cwd) or self.cwd / DEFAULT_NAME

    def load(self) -> Config:
        """Load it for a service, and note which files were read. Blocks while commands run. Raises ConfigError."""
        before = self.signs()
        try:
            config = self.read()
        except ConfigError as error:
            self._note(before, error.files or (*self.seen,))
            raise
        self._note(before, config.source.files)
        return config

    def _note(self, before: Mapping[Path, Sign], files: Sequence[Path]) -> None:
        self.seen = {file: before[file] if file in before else _sign(file) for file in (*files, *self._own())}

    def read(self, text: str | None = None) -> Config:
        """The same, noting nothing. text: see `load` of the module. Raises ConfigError."""
        made = None if text is None or self.path.exists() else self.path
        return load(self.named or made, self.environ, self.cwd, service=True, text=text)

    def signs(self) -> Mapping[Path, Sign]:
        """Return the present signs of these files: they differ from `seen` when something has changed. Blocks."""
        return {file: _sign(file) for file in (*self.seen, *self._own())}

    def _own(self) -> Sequence[Path]:
        path = self.path
        return path, path.parent / VARIABLES

    def change(self, key: str, value: str) -> KeyPath:
        """Write a value, as YAML has it, at a dotted key; returns the path of the key.

        The file is replaced at once, so that nobody reads half of it. Raises ConfigError with what is wrong, and then
        changes nothing, or OSError.
        """
        file = self.path.resolve()
        label = label_of(self.path, self.named, self.cwd)
        before = read_text(file, label) if file.exists() else ""
        path, after = _with(before, key, value, label)
        self.read(after)
        _replace(file, after)
        return path


def _sign(file: Path) -> Sign:
    with suppress(OSError):
        found = file.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def _with(text: str, key: str, value: str, label: str) -> tuple[KeyPath, str]:
    """Return the path of a dotted key, and the text of a configuration with a value there."""

    def wrong(reason: str) -> ConfigError:
        return ConfigError((Problem(label, None, (key,), reason),))

    marked, variables = mark_variables(f"{text}\0{value}")
    text, _, value = marked.partition("\0")
    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 10_000
    yaml.indent(**_indents(text))
    try:
        tree, given = yaml.load(text), YAML().load(value)
    except YAMLError:
        raise wrong("the value, or the file, is not valid YAML; put a text with special characters in quotes") from None
    tree = yaml.map() if tree is None else tree
    path, here = _split(tree, key), tree
    for number, part in enumerate(path):
        if not isinstance(here, dict):
            raise wrong(f"{dotted(path[:number]) or 'the file'} is no mapping; change it in the file")
        if number < len(path) - 1 and here.get(part) is None:
            here[part] = yaml.map()
        above, here = here, here.get(part)
    above[path[-1]] = given
    written = StringIO()
    yaml.dump(tree, written)
    return path, variables(written.getvalue())


def _split(tree: object, key: str) -> tuple[str, ...]:
    """Return the path of a dotted key. Names hold dots, so the longest one that is written is taken first."""
    names = [str(name) for name in tree] if isinstance(tree, dict) else []
    known = [name for name in names if key == name or key.startswith(f"{name}.")]
    name = max(known, key=len, default=key.partition(".")[0])
    rest = key[len(name) + 1 :]
    return (name, *(_split(tree.get(name) if isinstance(tree, dict) else None, rest) if rest else ()))


def _indents(text: str) -> dict[str, int]:
    """Return how far mappings and lists are indented in a text; as in the example where it has none."""
    mapping, offset, above = 2, 2, ""
    for line in filter(str.strip, reversed(text.splitlines())):
        deeper = len(above) - len(above.lstrip()) - (len(line) - len(line.lstrip()))
        if line.partition(" #")[0].rstrip().endswith(":") and not line.lstrip().startswith(("#", "-")):
            if above.lstrip().startswith("- ") and deeper >= 0:
                offset = deeper
            elif deeper > 0 and not above.lstrip().startswith("#"):
                mapping = deeper
        above = line
    return {"mapping": mapping, "sequence": offset + 2, "offset": offset}


def _replace(file: Path, text: str) -> None:
    """Put a text in the place of a file, which keeps its mode; a new one is for its owner alone."""
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    descriptor, name = mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8") as made:
            made.write(text)
            made.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
