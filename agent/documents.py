"""The text of PDF and office files, page by page, made in a process of its own (`agent/document_reader.py`).

What is parsed is hostile at worst: the process has no secrets, is bounded in memory and time, and ends in any case.
"""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path

SECONDS = 40.0
_PROGRAM = Path(__file__).with_name("document_reader.py")
_ENDINGS = (".docx", ".xlsx", ".pptx")


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


def is_document(name: str, content: bytes) -> bool:
    """Whether a file is one whose text can be made here, by its first bytes and its name."""
    return content.startswith(b"%PDF-") or (content.startswith(b"PK\x03\x04") and name.lower().endswith(_ENDINGS))


async def pages_of(content: bytes, first: int, chars: int) -> Pages:
    """Return the text of a document from a page on, as many whole pages as fit. Raises NotRead."""
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    command = (sys.executable, "-I", str(_PROGRAM))
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=nowhere, env={}, cwd="/")
    try:
        async with asyncio.timeout(SECONDS):
            asked = json.dumps({"first": first, "chars": chars}).encode()
            answer, _ = await process.communicate(asked + b"\n" + content)
    except TimeoutError:
        raise NotRead(f"it could not be read within {SECONDS:g} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise NotRead("its text cannot be read: it is damaged, locked, or too large")
    found = Pages(**json.loads(answer))
    if first > found.count:
        raise NotRead(f"it has {found.count:,} pages only")
    return found
