"""A provider's prompt cache in small: which tokens of a prompt were read from it and which written to it.

Anthropic's rule: a mark writes the prefix up to it; a read finds the longest prefix that an earlier request
wrote, at most 20 blocks before a mark; prompts below a minimum are not cached. A token is four characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

LOOK_BACK = 20


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Tokens of one prompt: read from the cache, written to it, and neither."""

    read: int
    written: int
    plain: int


class PromptCache:
    """The prefixes that have been written, of all conversations."""

    def __init__(self, minimum: int) -> None:
        self._minimum = minimum
        self._known: set[bytes] = set()

    def use(self, model: str, blocks: Sequence[tuple[str, bool]]) -> CacheUse:
        """Look up and write one prompt: its blocks in order, each with whether it carries a mark."""
        digest = blake2b(model.encode(), digest_size=16)
        total = 0
        prefixes: list[tuple[bytes, int]] = []
        for text, _ in blocks:
            digest.update(text.encode())
            total += max(1, len(text) // 4)
            prefixes.append((digest.digest(), total))
        marks = [index for index, (_, marked) in enumerate(blocks) if marked]
        read = 0
        for mark in marks:
            for prefix, tokens in prefixes[max(0, mark - LOOK_BACK) : mark + 1]:
                if prefix in self._known:
                    read = max(read, tokens)
        written = 0
        for mark in marks:
            prefix, tokens = prefixes[mark]
            if tokens >= self._minimum:
                self._known.add(prefix)
                written = max(written, tokens - read)
        return CacheUse(read, written, total - read - written)
