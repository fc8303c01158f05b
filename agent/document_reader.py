"""Makes text of a PDF or an office file, page by page. This program is run as a file, in a process of its own.

It has no secrets, and bounds its own memory and time. Standard input is one line of JSON, `first` (the page to begin
with, from 1) and `chars`, and then the file; standard output is JSON. An exit code other than 0 means that it cannot be
read. Office files have no pages of their own: those of a presentation are its slides; paragraphs and rows are counted
into pages of about 3,000 characters, and each sheet begins one. Of one that is too long for the time the first pages
are read, and the last of them says so.
"""

import io
import json
import resource
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

MEMORY = 1024**3
CPU_SECONDS = 30
# Bytes of an office file when it is unpacked; more is refused before it is.
MAX_UNPACKED = 200 * 1024 * 1024
# Characters of a page made here, and of one line.
PAGE, LINE = 3000, 10_000
# The most pages of an office file, and the seconds in which they are made.
MAX_PAGES, SECONDS = 5000, 15.0
_GOES_ON = "(the file goes on from here; it is too large for the rest to be read)"


class NotRead(Exception):
    """A file cannot be read; the text says why."""


def _filled(lines: Iterable[str], head: str = "") -> Iterator[str]:
    """Yield lines as pages. head: the first line of each."""
    page, size = list[str](), 0
    for line in lines:
        page.append(line[:LINE])
        size += len(page[-1]) + 1
        if size >= PAGE:
            yield "\n".join(filter(None, (head, *page)))
            page, size = [], 0
    if page or head:
        yield "\n".join(filter(None, (head, *page)))


_KINDS_OF_WORD = (
    "application/vnd.ms-word.document.macroEnabled.main+xml",
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
)


def _word(file: io.BytesIO) -> Iterator[str]:
    from docx.opc.part import PartFactory
    from docx.package import Package
    from docx.parts.document import DocumentPart
    from docx.table import Table

    # with macros, or a template; the library opens only the plain kind by itself
    PartFactory.part_type_for.update(dict.fromkeys(_KINDS_OF_WORD, DocumentPart))
    found: Any = Package.open(file).main_document_part

    def lines() -> Iterator[str]:
        for block in found.document.iter_inner_content():
            if isinstance(block, Table):
                yield from (_row(cell.text for cell in row.cells) for row in block.rows)
            elif block.text.strip():
                yield block.text

    return _filled(lines())


def _sheets(file: io.BytesIO) -> Iterator[str]:
    import openpyxl  # type: ignore[import-untyped]

    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    for sheet in book.worksheets:
        rows = (_row("" if cell is None else str(cell) for cell in row) for row in sheet.iter_rows(values_only=True))
        yield from _filled(filter(lambda row: row.strip(" |"), rows), f"Sheet {sheet.title}")


def _slides(file: io.BytesIO) -> Iterator[str]:
    import pptx

    for slide in pptx.Presentation(file).slides:
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        lines = [*_shapes(slide.shapes), *((f"Notes: {notes.text}",) if notes is not None and notes.text else ())]
        yield "\n".join(lines)


def _shapes(shapes: Any) -> Iterator[str]:
    for shape in shapes:
        if shape.has_text_frame and shape.text_frame.text.strip():
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            yield from (_row(cell.text for cell in row.cells) for row in shape.table.rows)
        elif hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)


def _row(cells: Iterable[str]) -> str:
    return " | ".join(" ".join(cell.split()) for cell in cells).rstrip(" |")


_KINDS: dict[str, Callable[[io.BytesIO], Iterator[str]]] = {
    "word/document.xml": _word,
    "xl/workbook.xml": _sheets,
    "ppt/presentation.xml": _slides,
}


def read(content: bytes, first: int, chars: int) -> dict[str, object]:
    """Return the fields of `Pages`. Raises NotRead, or an error of a library."""
    file = io.BytesIO(content)
    if not content.startswith(b"PK"):
        import pypdf
        from pypdf.errors import FileNotDecryptedError

        try:
            sides = pypdf.PdfReader(file).pages
            return _taken(lambda at: sides[at].extract_text(), len(sides), first, chars)
        except FileNotDecryptedError:
            raise NotRead("it is locked with a password") from None
    with zipfile.ZipFile(file) as packed:
        if sum(one.file_size for one in packed.infolist()) > MAX_UNPACKED:
            raise NotRead("it is too large when it is unpacked")
        kind = next(kind for name, kind in _KINDS.items() if name in packed.namelist())
    pages, until = list[str](), time.monotonic() + SECONDS
    for page in kind(file):
        pages.append(page)
        if len(pages) == MAX_PAGES or time.monotonic() > until:
            pages.append(_GOES_ON)
            break
    return _taken(pages.__getitem__, len(pages), first, chars)


def _taken(page: Callable[[int], str], count: int, first: int, chars: int) -> dict[str, object]:
    """Take pages from the first one on, each with a heading, until the next one does not fit."""
    taken, size, last = list[str](), 0, first - 1
    for at in range(first - 1, count):
        text = f"## Page {at + 1}\n{page(at).strip() or '(no text on it)'}"
        if taken and size + len(text) > chars:
            break
        cut = text if len(text) <= chars else f"{text[:chars]}\n[… {len(text) - chars:,} characters left out]"
        taken.append(cut)
        size, last = size + len(cut) + 2, at + 1
    return {"text": "\n\n".join(taken), "first": first, "last": last, "count": count}


def _bounded() -> None:
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_FSIZE, 0)):
        with suppress(ValueError, OSError):  # this system does not know the bound
            resource.setrlimit(kind, (most, most))
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        answer = read(sys.stdin.buffer.read(), asked["first"], asked["chars"])
    except NotRead as error:
        answer = {"why": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    _bounded()
