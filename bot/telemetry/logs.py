"""Logs of the service and of the libraries in it, one line each, by structlog over the standard library.

The redactor works on the finished line, tracebacks included, so that no field can be forgotten.
"""

import contextlib
import logging
import logging.handlers
import os
import sys
import traceback
from io import TextIOWrapper
from pathlib import Path

import structlog
from structlog.stdlib import BoundLogger, LoggerFactory, ProcessorFormatter, add_log_level, filter_by_level
from structlog.typing import Processor

from bot.telemetry.redact import Redactor
from channels.registry import sections

# Libraries whose ordinary news are noise here, and whose request lines may hold a token; channels name theirs.
_QUIET = ("httpx2", "httpcore2", "apscheduler", "uvicorn.error", "asyncio", "aiosqlite", "watchfiles")
_FILE_BYTES = 5_000_000


def set_up(redactor: Redactor, file: Path | None) -> None:
    """Log to standard error, or to a file of at most 5 MB and its predecessor (where the terminal is being used)."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        add_log_level,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
    ]
    structlog.configure(
        processors=[filter_by_level, *shared, ProcessorFormatter.wrap_for_formatter],
        logger_factory=LoggerFactory(),
        wrapper_class=BoundLogger,
        cache_logger_on_first_use=True,
    )
    colors = file is None and sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
    steps = (
        ProcessorFormatter.remove_processors_meta,
        renderer,
        lambda logger, method, line: redactor.clean(str(line)),
    )
    formatter = ProcessorFormatter(foreign_pre_chain=shared, processors=steps)
    handler = _ToStream() if file is None else _ToFile(file, maxBytes=_FILE_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(formatter)
    sys.excepthook = lambda kind, error, trace: print(  # noqa: T201 what nobody caught
        redactor.clean("".join(traceback.format_exception(kind, error, trace))), end="", file=sys.stderr
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in (*_QUIET, *(library for section in sections().values() for library in section.quiet)):
        logging.getLogger(name).setLevel(logging.WARNING)


class _Calm(logging.Handler):
    """A handler whose failures, such as a full disk, are one line in all and not a traceback for each record."""

    _failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Say the first one; what cannot be logged is lost."""
        if not self._failed and sys.stderr is not None:
            self._failed = True
            with contextlib.suppress(OSError, ValueError):
                print(f"The log cannot be written: {sys.exc_info()[1]}", file=sys.stderr)  # noqa: T201


class _ToStream(_Calm, logging.StreamHandler):  # type: ignore[type-arg]
    """To standard error."""


class _ToFile(_Calm, logging.handlers.RotatingFileHandler):
    """To a file and its predecessor, which only their owner can read, also after the file was begun anew."""

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            descriptor = os.open(path, flags, 0o600)
            os.fchmod(descriptor, 0o600)
            return descriptor

        return open(self.baseFilename, "a", encoding=self.encoding, opener=private)
