"""Values that stand elsewhere: `file:<path>` and `command:<shell command>` in the place of a value.

Each is read once while the configuration is loaded. What goes wrong names the file or the command, never what it gave.
"""

import os
import re
import select
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bot.config.document import Document, Reference
from bot.config.errors import dotted
from bot.telemetry.redact import keyless, mask_text

# Seconds that a command has, and bytes that a value has at most.
TIMEOUT = 10.0
_MOST = 64 * 1024
_LONG_WORD = re.compile(r"\S{16,}")


class Unreadable(Exception):
    """A reference that gives no value; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Referred:
    """What the references of a configuration have given."""

    files: tuple[Path, ...] = ()
    # The keys whose commands have run.
    commands: tuple[str, ...] = ()
    # Those that may be secrets, because they are one long word.
    secrets: tuple[str, ...] = field(default=(), repr=False)


def put_in(document: Document, environ: Mapping[str, str], base: Path) -> Referred:
    """Put what the references of a document stand for into its tree; mistakes are reported.

    environ: of the service. base: the folder that paths are relative to. Blocks while commands run.
    """
    named = {name for one in document.references.values() for name in one.variables} | document.named
    bare = keyless({name: value for name, value in environ.items() if name not in named})
    found: dict[Reference, str | Unreadable] = {}
    for path, one in document.references.items():
        if one not in found:
            try:
                own = {name: environ[name] for name in one.variables if name in environ}
                written = _read(_file(one, base)) if one.kind == "file" else _run(one.text, bare | own, base)
                found[one] = _text(written)
            except Unreadable as error:
                found[one] = error
        value = found[one]
        document.put(path, value if isinstance(value, str) else None)
        if isinstance(value, Unreadable):
            document.report(f"{one.kind} `{mask_text(one.text)}`: {value}", path)
            document.unset.add(path)
    return Referred(
        files=tuple(_file(one, base) for one in found if one.kind == "file"),
        commands=tuple(dotted(path) for path, one in document.references.items() if one.kind == "command"),
        secrets=tuple(value for value in found.values() if isinstance(value, str) and _LONG_WORD.fullmatch(value)),
    )


def _file(reference: Reference, base: Path) -> Path:
    return base / os.path.expanduser(reference.text)


def _read(file: Path) -> bytes:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise Unreadable("it is no file")
        with file.open("rb") as opened:
            return opened.read(_MOST + 1)
    except OSError as error:
        raise Unreadable(f"it cannot be read: {error.strerror or 'unknown error'}") from None


def _run(command: str, environ: Mapping[str, str], base: Path) -> bytes:
    """What a command writes. When it takes too long, it and what it has begun are ended."""
    running = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=base,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # where a program may repeat what it was given
        start_new_session=True,
    )
    try:
        written = _output(running)
    except subprocess.TimeoutExpired:
        raise Unreadable(f"it has not ended within {TIMEOUT:g} s") from None
    finally:
        with suppress(OSError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        if running.stdout:
            running.stdout.close()
    if running.returncode and len(written) <= _MOST:
        raise Unreadable(f"it ended with exit code {running.returncode}")
    return written


def _output(running: subprocess.Popen[bytes]) -> bytes:
    """Read what a command writes until it has ended, or has written more than a value has. Raises TimeoutExpired."""
    assert running.stdout is not None
    written, until, poll = b"", time.monotonic() + TIMEOUT, select.poll()
    poll.register(running.stdout, select.POLLIN)
    while len(written) <= _MOST:
        if not poll.poll(max(0, until - time.monotonic()) * 1000):
            raise subprocess.TimeoutExpired(running.args, TIMEOUT)
        if not (piece := os.read(running.stdout.fileno(), _MOST)):
            running.wait(max(0, until - time.monotonic()))
            break
        written += piece
    return written


def _text(written: bytes) -> str:
    if len(written) > _MOST:
        raise Unreadable(f"it gives more than {_MOST // 1024} KB")
    try:
        text = written.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise Unreadable("it gives no text in UTF-8") from None
    if not text or "\0" in text:
        raise Unreadable("it gives nothing" if not text else "it gives characters that no value has")
    return text
