"""Leaves out the stand-ins' own tests while nothing that they look at has changed.

`tests/standins/passed.txt` holds a hash of the stand-ins, of their tests and of the versions of the libraries that
both use, as it was when those tests last passed as a whole. Where it is another one they run, and once all of them
have passed the file is written.
"""

import hashlib
import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

FOLDER = "tests/standins"
BESIDES = "tests/watch.py"
"""Used by the stand-ins as well."""
PASSED = f"{FOLDER}/passed.txt"
ALWAYS = "STANDINS"
"""Environment variable that has the tests run whatever has changed."""

LIBRARIES = (
    "aiohttp",
    "anthropic",
    "discord.py",
    "jsonschema",
    "mcp",
    "openai",
    "opentelemetry-proto",
    "protobuf",
    "pytest",
    "python-telegram-bot",
    "regex",
    "slack-bolt",
    "slack-sdk",
    "yarl",
)


def fingerprint(root: Path) -> str:
    """Return the hash of everything that the stand-ins' own tests depend on."""
    digest = hashlib.sha256()
    for path in sorted([*(root / FOLDER).rglob("*"), root / BESIDES]):
        name = path.relative_to(root).as_posix()
        if path.is_file() and name != PASSED and "__pycache__" not in path.parts:
            digest.update(f"{name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    for library in LIBRARIES:
        digest.update(f"{library} {_version(library)}\n".encode())
    return digest.hexdigest()


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


def left_out(root: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the tests may be left out; `make soak` and STANDINS=all always run them."""
    if environ.get(ALWAYS) or environ.get("HYPOTHESIS_PROFILE") == "soak":
        return False
    passed = root / PASSED
    return passed.exists() and passed.read_text(encoding="utf-8").strip() == fingerprint(root)


def note_passed(root: Path) -> bool:
    """Write that all tests passed on the present state; return whether that is news."""
    passed, now = root / PASSED, fingerprint(root)
    if passed.exists() and passed.read_text(encoding="utf-8").strip() == now:
        return False
    passed.write_text(f"{now}\n", encoding="utf-8")
    return True
