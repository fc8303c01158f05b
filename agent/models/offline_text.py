"""Long Markdown for the offline model: deterministic, and with everything a renderer and a chunker must cope with."""

from pathlib import Path

_STORY, *_SPECIALS = Path(__file__).with_name("offline.md").read_text(encoding="utf-8").rstrip("\n").split("\n%%\n")
"""Words for paragraphs; a list, code, a table, a quotation."""
_WORDS = _STORY.split()


def markdown(words: int) -> str:
    """A document of about so many words (white space separates words)."""
    blocks: list[str] = []
    number = count = 0
    while count < max(words, 1):
        special = _SPECIALS[number % len(_SPECIALS)]
        number += 1
        heading = f"{'#' if number == 1 else '##'} Part {number}: the harbour 🚢"
        for block in (heading, _paragraph(number, 60), special, _paragraph(number + 1, 45)):
            if count < max(words, 1):
                blocks.append(block)
                count += len(block.split())
    return "\n\n".join(blocks)


def _paragraph(start: int, length: int) -> str:
    """Sentences of twelve words with some emphasis; which words depends on where it starts."""
    sentences = []
    for first in range(0, length, 12):
        words = [_WORDS[(start * 7 + first + place) % len(_WORDS)] for place in range(min(12, length - first))]
        words[len(words) // 2] = f"**{words[len(words) // 2]}**"
        sentences.append(" ".join(words).capitalize() + ".")
    return " ".join(sentences)
