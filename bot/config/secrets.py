"""The secrets that this process knows: which they are, and how commands of the same user are kept from reading them.

`docs/security.md` says what remains.
"""

import ctypes
import os
import sys
from collections.abc import Collection, Iterator, Mapping

from pydantic import BaseModel, SecretStr

from bot.config.choose_model import environment_secrets
from bot.config.explain import is_secret
from bot.config.mcp import Server
from bot.config.model import Config
from bot.telemetry.redact import SECRET_NAME, mask_url


def secrets(config: Config, environ: Mapping[str, str]) -> list[str]:
    """Every secret of the configuration, those inside URLs too, and of the environment it reads."""
    keys, urls = environment_secrets(environ)
    return [*keys, *config.source.referred.secrets, *(secret for value in (config, *urls) for secret in _within(value))]


def _within(value: object) -> Iterator[str]:
    """The secrets in a value of the configuration, found by their type."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str) and not any(map(str.isspace, value)):
        yield from mask_url(value)[1]
    elif isinstance(value, Server):
        yield from value.secrets()
    elif isinstance(value, BaseModel):
        yield from _within(vars(value))
    elif isinstance(value, Mapping):
        yield from _within(tuple(value.values()))
        yield from (text for name, text in value.items() if isinstance(text, str) and is_secret((name,)))
    elif isinstance(value, tuple | list):
        for below in value:
            yield from _within(below)


_SET_DUMPABLE = 4  # of <linux/prctl.h>
# Characters of a secret that is looked for inside values; shorter ones may be ordinary words, such as a path's.
_LONG = 16


def shield(secrets: Collection[str]) -> None:
    """Forget environment variables that hold a secret, and close memory and environment to other processes.

    The block in which the process was given its environment is what `/proc/<pid>/environ` shows, also to root: the
    values are wiped there, too. Being undumpable (Linux) closes that file and `/proc/<pid>/mem` to all but root.
    """
    library = ctypes.CDLL(None)
    if sys.platform == "linux":
        library.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    library.getenv.restype = ctypes.c_void_p
    for name, value in list(os.environ.items()):
        if SECRET_NAME.search(name) or any(_holds(value, secret) for secret in secrets):
            if address := library.getenv(os.fsencode(name)):
                ctypes.memset(address, 0, len(os.fsencode(value)))
            del os.environ[name]


def _holds(value: str, secret: str) -> bool:
    return value == secret != "" or (len(secret) >= _LONG and secret in value)
