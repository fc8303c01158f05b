"""The text of PDF and office files, page by page, made in a process of its own (`agent/document_reader.py`).

What is parsed is hostile at worst: the process has no secrets, is bounded in memory and time, and ends in any case.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from agent import programs

SECONDS = 40.0
_PROGRAM = Path(__file__).with_name("document_reader.py")
# What stands in each office file, whatever its name is.
_PARTS = (b"word/document.xml", b"xl/workbook.xml", b"ppt/presentation.xml")
# Where in a file the mark of a PDF may begin, as readers of PDF take it.
_MARK_WITHIN = 1024


class NotRead(Exception):
    """A document cannot be read; says why in plain words."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The text of some pages, the first of them cut where it alone is too long."""

    text: str
    # The numbers of the first and the last page, and of all.
    first: int
    last: int
    count: int


def is_document(content: bytes) -> bool:
    """Whether a file is one whose text can be made here, by what is in it; names and types are often wrong."""
    is_office = content.startswith(b"PK\x03\x04") and any(part in content for part in _PARTS)
    return is_office or b"%PDF-" in content[:_MARK_WITHIN]


async def pages_of(content: bytes, first: int, chars: int) -> Pages:
    """Return the text of a document from a page on, as many whole pages as fit. Raises NotRead."""
    asked = json.dumps({"first": first, "chars": chars}).encode()
    command, most = (sys.executable, "-I", str(_PROGRAM)), 8 * chars + 10_000
    try:
        code, answer, _ = await programs.run(command, asked + b"\n" + content, {}, "/", most, SECONDS)
    except TimeoutError:
        raise NotRead(f"it could not be read within {SECONDS:g} seconds") from None
    except programs.TooMuch:
        code, answer = 1, b""
    if code:
        raise NotRead("its text cannot be read: it is damaged, or too large")
    told = json.loads(answer)
    if "why" in told:
        raise NotRead(told["why"])
    found = Pages(**told)
    if first > found.count:
        raise NotRead(f"it has {found.count:,} pages only")
    return found
