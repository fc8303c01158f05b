"""Which Hark this is: its version, the commit of its checkout, and the schema of its store."""

import os
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from bot.telemetry.redact import few

_ROOT = Path(__file__).parents[2]


def described() -> str:
    """On one line. `-dirty` behind a commit: files were changed since; without a checkout no commit is named."""
    parts = [f"schema {len(list(_ROOT.glob('bot/store/migrations/*.sql')))}"]
    if (_ROOT / ".git").exists():  # one above it would be of another program
        command = ("git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--exclude=*")
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(command, env=few(os.environ), capture_output=True, text=True, check=True, timeout=5)
            parts.insert(0, f"commit {done.stdout.strip()}")
    return f"hark {version('hark-bot')} ({', '.join(parts)})"
