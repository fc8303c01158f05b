"""The payload log: each request to a model and what came of it, as a line of JSON, without secrets.

It is for those who look into what a model was told. It is off by default, because it holds all that people write. The
file and the one before it together stay within a bound, and only the user of the service may read them.
"""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from agent.errors import ModelError
from agent.models.base import Answer, ModelClient, ModelRequest, StreamPart
from bot.telemetry.masked import Wrapped
from bot.telemetry.redact import Redactor

log = structlog.get_logger()

FILE = "payloads.jsonl"
# The most characters of the data of an image.
_IMAGE = 100


class PayloadLog:
    """A file of payloads and the one before it. most: their bytes together."""

    def __init__(self, folder: Path, redactor: Redactor, most: int) -> None:
        self._file, self._redactor, self._most = folder / FILE, redactor, most
        self._failed = False

    def write(self, model: str, request: ModelRequest, outcome: dict[str, object]) -> None:
        """Append a request and what came of it; a file that cannot be written is logged once, and fails nothing."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = {"at": at, "model": model, "request": asdict(request), **outcome}
        line = self._redactor.clean(json.dumps(_lighter(record), ensure_ascii=False, default=str)) + "\n"
        try:
            self._turn_over()
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write(line)
            self._failed = False
        except OSError as error:
            if not self._failed:
                log.warning("payloads cannot be written", file=str(self._file), reason=str(error))
            self._failed = True

    def _turn_over(self) -> None:
        """Begin a new file when half of what is allowed is full."""
        if self._file.exists() and self._file.stat().st_size > self._most // 2:
            self._file.replace(self._file.with_suffix(".1.jsonl"))


class LoggedClient(Wrapped):
    """A client of which all calls are written down."""

    def __init__(self, client: ModelClient, payloads: PayloadLog) -> None:
        super().__init__(client)
        self._payloads = payloads

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        outcome: dict[str, object] = {"cut": True}
        try:
            async with aclosing(self._client.stream(request)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        outcome = {"answer": asdict(part)}
                    yield part
        except ModelError as error:
            outcome = {"error": {"kind": error.kind.value, "status": error.status, "detail": error.detail}}
            raise
        finally:
            self._measure()
            self._payloads.write(self.name, request, outcome)


def _lighter(value: Any) -> Any:
    """Return a JSON value with the data of images shortened."""
    if isinstance(value, dict):
        if value.get("type") == "image" and len(value["data"]) > _IMAGE:
            value = value | {"data": f"{value['data'][:_IMAGE]}… ({len(value['data']):,} characters)"}
        return {key: _lighter(inner) for key, inner in value.items()}
    return [_lighter(inner) for inner in value] if isinstance(value, list | tuple) else value
