"""Asks an OpenAI-compatible endpoint for the meaning of texts as vectors, and compares vectors.

A vector is kept as its numbers and as the signs of these. Signs are compared first, which takes a fraction of a
microsecond for each piece; the numbers decide among the nearest.
"""

import asyncio
import json
import math
import sqlite3
from array import array
from collections.abc import Sequence
from operator import mul
from typing import Any

from bot.config.memory import Embeddings
from bot.memory.index import CANDIDATES

# Seconds for a question, which somebody waits for, and for a batch of pieces; and pieces of a batch.
QUESTION_SECONDS, BATCH_SECONDS, BATCH = 1.0, 60.0, 64
# The most characters of a text.
_LONGEST = 2000
# Of vectors of texts that have nothing to do with each other, how alike they are where too few are known to tell.
_UNLIKE, _TOO_FEW = 0.3, 20


class EmbeddingError(Exception):
    """The endpoint did not answer as it should; the text says why, without the key."""


class Embedder:
    """Asks the configured endpoint."""

    def __init__(self, settings: Embeddings) -> None:
        self._url = f"{(settings.base_url or '').rstrip('/')}/embeddings"
        self._key = settings.api_key.get_secret_value() if settings.api_key else ""
        self.model = settings.model or ""
        self._client: Any = None

    async def vectors(self, texts: Sequence[str], seconds: float) -> list["Vector"]:
        """Return the vector of each text. Raises EmbeddingError."""
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {self._key}"} if self._key else {})
        body = {"model": self.model, "input": [text[:_LONGEST] or " " for text in texts], "encoding_format": "float"}
        try:
            async with asyncio.timeout(seconds):  # in all, however slowly it comes
                answer = await self._client.post(self._url, json=body, timeout=None)
        except TimeoutError:
            raise EmbeddingError(f"it took longer than {seconds:.0f} s") from None
        except httpx2.HTTPError as error:
            raise EmbeddingError(f"it cannot be reached: {type(error).__name__}") from None
        if answer.status_code != 200:
            raise EmbeddingError(f"it answered with status {answer.status_code}")
        try:
            data = sorted(json.loads(answer.content)["data"], key=lambda one: one["index"])
            found = [Vector(one["embedding"]) for one in data]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise EmbeddingError("its answer is not understood") from None
        if len(found) != len(texts) or len({len(one.value) for one in found}) > 1:
            raise EmbeddingError("it answered with too few vectors, or with vectors of several lengths")
        return found

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()


class Vector:
    """A vector of length 1."""

    def __init__(self, numbers: Sequence[float]) -> None:
        length = math.sqrt(sum(map(mul, numbers, numbers)))
        if not length or not math.isfinite(length):
            raise ValueError("a vector without a direction")
        self.value = array("f", (one / length for one in numbers))

    @property
    def stored(self) -> tuple[bytes, bytes]:
        """Its signs and its numbers."""
        return self.bits, self.value.tobytes()

    @property
    def bits(self) -> bytes:
        """The signs of the numbers, a bit each."""
        return int("".join("1" if one > 0 else "0" for one in self.value), 2).to_bytes(len(self.value) // 8 + 1)


class Nearness:
    """Finds the pieces that are nearest to a question, as `near` of `Index.find`, and keeps how near they are."""

    def __init__(self, model: str, question: Vector) -> None:
        self._model, self._question = model, question
        # From 0, as near as any piece, to 1, the same; by the id of the piece.
        self.like: dict[int, float] = {}
        # Whether vectors were forgotten that must be made anew.
        self.outdated = False

    def __call__(self, db: sqlite3.Connection) -> Sequence[int]:
        """Return the ids of the nearest pieces."""
        signs, size = int.from_bytes(self._question.bits), len(self._question.value)
        # a model of the same name may have another one behind it, whose vectors say nothing beside those of before
        other = "DELETE FROM vector WHERE model=? AND length(bits)<>?"
        self.outdated = db.execute(other, (self._model, len(self._question.bits))).rowcount > 0
        apart = [
            ((int.from_bytes(bits) ^ signs).bit_count(), digest)
            for digest, bits in db.execute("SELECT digest, bits FROM vector WHERE model=?", (self._model,))
        ]
        if not apart:
            return ()
        few = len(apart) < _TOO_FEW
        usual = _UNLIKE if few else max(0.0, math.cos(math.pi * sum(one for one, _ in apart) / len(apart) / size))
        for _, digest in sorted(apart)[:CANDIDATES]:
            row = db.execute("SELECT value FROM vector WHERE digest=? AND model=?", (digest, self._model)).fetchone()
            alike = sum(map(mul, self._question.value, array("f", row[0])))
            for (piece_id,) in db.execute("SELECT piece_id FROM piece WHERE digest=?", (digest,)):
                self.like[piece_id] = max(0.0, (alike - usual) / (1 - usual)) if usual < 1 else 0.0
        return list(self.like)
