"""A stand-in on loopback for OpenAI's `POST /v1/embeddings`.

Written from the page "Create embeddings" of OpenAI's reference: what it does not allow is refused with 400 (401 without
the key) and noted in `refused`, which a test that ends well finds empty. Texts with words of one meaning get vectors
that are near each other: `MEANINGS` says which words mean the same.
"""

import hashlib
import json
import re
from random import Random
from typing import Any

from aiohttp import web

from tests.standins.endpoint import Endpoint, Wrong

KEY = "vector-key-0123456789"
MAX_INPUTS, MAX_TOKENS = 2048, 8192
MODELS = ("text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002")
MEANINGS = (("car", "automobile", "auto"), ("doctor", "physician"), ("cellar", "basement"))
_FIELDS = {"input", "model", "dimensions", "encoding_format", "user"}


class EmbeddingsServer(Endpoint):
    """See the module.

    size: the numbers of a vector. body: what is answered in place of vectors. asked: the texts of each request; models:
    those that they named.
    """

    key = KEY

    def __init__(self) -> None:
        super().__init__()
        self.routes = {"/v1/embeddings": self._embeddings}
        self.size = 64
        self.body: str | None = None
        self.asked: list[list[str]] = []
        self.models: list[str] = []

    async def _embeddings(self, request: web.Request) -> web.Response:
        try:
            self.check(request, "application/json")
            model, texts = _asked(json.loads(await request.text()))
        except Wrong as wrong:
            return self.refuse(wrong)
        self.models.append(model)
        self.asked.append(texts)
        if self.body is not None:
            return await self.answer(web.Response(text=self.body, content_type="application/json"))
        data = [{"object": "embedding", "index": n, "embedding": self.vector(text)} for n, text in enumerate(texts)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return await self.answer(
            web.json_response({"object": "list", "data": data[::-1], "model": model, "usage": usage})
        )

    def vector(self, text: str) -> list[float]:
        """The sum of the directions of the words, each the same for words of one meaning."""
        found = [1e-3] * self.size
        for word in re.findall(r"\w+", text.lower()):
            same = next((one[0] for one in MEANINGS if word in one), word)
            random = Random(int.from_bytes(hashlib.sha256(same.encode()).digest()[:8]))
            found = [one + random.gauss(0, 1) for one in found]
        return found


def _asked(asked: Any) -> tuple[str, list[str]]:
    if not isinstance(asked, dict) or asked.keys() - _FIELDS:
        raise Wrong("unknown fields")
    if asked.get("model") not in MODELS:
        raise Wrong(f"model: {asked.get('model')}")
    if asked.get("encoding_format", "float") not in ("float", "base64"):
        raise Wrong(f"encoding_format: {asked['encoding_format']}")
    texts = [asked["input"]] if isinstance(asked.get("input"), str) else asked.get("input")
    if not isinstance(texts, list) or not 0 < len(texts) <= MAX_INPUTS:
        raise Wrong(f"input: 1 to {MAX_INPUTS} texts")
    if not all(isinstance(text, str) and 0 < len(text) <= 4 * MAX_TOKENS for text in texts):
        raise Wrong(f"input: each a text that is not empty, of at most {MAX_TOKENS} tokens")
    return asked["model"], texts
