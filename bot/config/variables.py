"""`.env` beside the configuration: variables that the shell need not have."""

from io import StringIO
from pathlib import Path

from bot.config.errors import ConfigError, Problem

VARIABLES = ".env"


def read_variables(file: Path, label: str) -> dict[str, str]:
    """What stands in the file, nothing where there is none; values are taken as they are written. Raises ConfigError,
    which shows nothing of it."""
    if not file.is_file():  # a folder of that name is somebody's environment of Python
        return {}
    from dotenv.parser import parse_stream  # most have none

    found = list(parse_stream(StringIO(read_text(file, label))))
    lines = (
        one.original.line + _blank(one.original.string) for one in found if one.error or (one.key and not one.value)
    )
    problems = tuple(Problem(label, line, (), "not NAME=value with a value, nor a comment (# …)") for line in lines)
    if problems:
        raise ConfigError(problems)
    return {one.key: one.value for one in found if one.key and one.value}


def read_text(file: Path, label: str) -> str:
    """A file of the configuration. Raises ConfigError."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        problem = "not a text in UTF-8"
    except OSError as error:
        problem = f"cannot be read: {error.strerror or 'unknown error'}"
    raise ConfigError((Problem(label, None, (), problem),))


def _blank(text: str) -> int:
    """Blank lines that an entry begins with."""
    return text[: len(text) - len(text.lstrip())].count("\n")
