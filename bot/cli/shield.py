"""Keeps the secrets of this process from commands that run as the same user. `docs/security.md` says what remains."""

import ctypes
import os
import re
import sys
from collections.abc import Collection

_SET_DUMPABLE = 4  # of <linux/prctl.h>
_SECRET_NAME = re.compile(r"(?:KEYS?|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$", re.IGNORECASE)
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
        if _SECRET_NAME.search(name) or any(_holds(value, secret) for secret in secrets):
            if address := library.getenv(os.fsencode(name)):
                ctypes.memset(address, 0, len(os.fsencode(value)))
            del os.environ[name]


def _holds(value: str, secret: str) -> bool:
    return value == secret != "" or (len(secret) >= _LONG and secret in value)
