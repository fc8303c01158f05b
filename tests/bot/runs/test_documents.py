"""Documents that people send, in the real service: their text is shown, and read by page; hostile ones cost a line."""

import io
import zipfile
from pathlib import Path
from typing import Any

import docx
import openpyxl  # type: ignore[import-untyped]
import pptx
import pytest
from pypdf import PdfWriter

from agent import document_reader
from agent.documents import NotRead, is_document, pages_of
from bot.runs import media
from channels.message import Attachment
from tests.service import running
from tests.standins.script import Call
from tests.watch import lanes_idle


def saved(made: Any) -> bytes:
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def word(paragraphs: int = 1) -> bytes:
    made = docx.Document()
    for number in range(paragraphs):
        made.add_paragraph(f"Paragraph {number} {'x' * 80}")
    table = made.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "left", "right"
    return saved(made)


def sheets() -> bytes:
    made = openpyxl.Workbook()
    made.active.append([1, "two", None, 3.5])
    made.create_sheet("Costs").append(["rent"])
    return saved(made)


def slides() -> bytes:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "Plan", "We begin"
    slide.notes_slide.notes_text_frame.text = "speak slowly"
    return saved(made)


def pdf(pages: int = 2) -> bytes:
    """A PDF whose pages say which they are, written by hand because the library makes no text."""
    kids = " ".join(f"{3 + 2 * at} 0 R" for at in range(pages))
    found = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>"]
    font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    for at in range(pages):
        size = "/MediaBox [0 0 200 200]"
        found.append(f"<< /Type /Page /Parent 2 0 R {size} /Contents {4 + 2 * at} 0 R /Resources {font} >>")
        words = f"BT /F1 12 Tf 10 100 Td (This is side {at + 1}) Tj ET"
        found.append(f"<< /Length {len(words)} >>\nstream\n{words}\nendstream")
    body, places = "%PDF-1.4\n", []
    for number, one in enumerate(found, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{one}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(places) + 1} /Root 1 0 R >>"
    return f"{body}{end}\nstartxref\n{len(body)}\n%%EOF".encode()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (pdf(1), "## Page 1\nThis is side 1"),
        (word(), f"## Page 1\nParagraph 0 {'x' * 80}\nleft | right"),
        (sheets(), "## Page 1\nSheet Sheet\n1 | two |  | 3.5\n\n## Page 2\nSheet Costs\nrent"),
        (slides(), "## Page 1\nPlan\nWe begin\nNotes: speak slowly"),
    ],
    ids=("pdf", "docx", "xlsx", "pptx"),
)
async def test_each_kind_is_text(content: bytes, text: str) -> None:
    assert (await pages_of(content, 1, 1000)).text == text


async def test_pages_are_taken_as_they_fit() -> None:
    found = await pages_of(pdf(9), 3, 60)
    assert (found.first, found.last, found.count) == (3, 4, 9)
    assert found.text == "## Page 3\nThis is side 3\n\n## Page 4\nThis is side 4"
    assert (await pages_of(pdf(2), 2, 5)).text.startswith("## Pa\n[… 19 characters left out]")
    with pytest.raises(NotRead, match="it has 9 pages only"):
        await pages_of(pdf(9), 10, 60)


async def test_what_is_damaged_locked_or_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    locked = PdfWriter()
    locked.add_blank_page(10, 10)
    locked.encrypt("secret")
    file = io.BytesIO()
    locked.write(file)
    damaged = "damaged, or too large"
    for content, why in ((b"%PDF-1.4 junk", damaged), (b"PK\x03\x04junk", damaged), (file.getvalue(), "a password")):
        with pytest.raises(NotRead, match=why):
            await pages_of(content, 1, 1000)
    monkeypatch.setattr(document_reader, "MAX_UNPACKED", 1000)
    with pytest.raises(document_reader.NotRead, match="too large when it is unpacked"):
        document_reader.read(word(), 1, 1000)


async def test_it_is_known_by_what_is_in_it_whatever_its_name_is() -> None:
    plain, macros = (
        ".openxmlformats-officedocument.wordprocessingml.document.main",
        ".ms-word.document.macroEnabled.main",
    )
    made, content = io.BytesIO(), word()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(plain.encode(), macros.encode()))
    for one in (made.getvalue(), b"\xef\xbb\xbf\n" + pdf(1)):
        assert is_document(one)
        assert (await pages_of(one, 1, 1000)).count == 1
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as new:
        new.writestr("notes.txt", b"word")
    assert not is_document(archive.getvalue())
    assert not is_document(b"")


async def test_of_a_sheet_that_is_too_long_the_first_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    for number in range(900):
        book.active.append([number, "rent"])
    content = saved(book)
    assert document_reader.read(content, 1, 100)["count"] == 4
    monkeypatch.setattr(document_reader, "SECONDS", 0.0)
    found = document_reader.read(content, 2, 1000)
    assert found["count"] == 2
    assert str(found["text"]).startswith("## Page 2\n(the file goes on from here")


async def test_a_document_is_shown_and_read_on_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_TEXT", 100)
    async with running(tmp_path) as hark:
        hark.channel.files = {"r": pdf(9), "bad": b"%PDF-1.4 junk"}
        files = (Attachment(kind="file", ref="r", name="plan.pdf"), Attachment(kind="file", ref="bad", name="b.pdf"))
        await hark.write("look", attachments=files)
        await hark.until(lambda: hark.model.requests)
        await lanes_idle()
        shown = hark.model.requests[0].messages[-1].text
        assert "; 9 pages; from page 4 on: `read` with page\n<file>\n## Page 1\nThis is side 1\n" in shown
        assert "its text cannot be read: it is damaged" in shown
        path = next(word.rstrip(";") for word in shown.split() if word.startswith("media/"))
        await hark.say("go on", answers=[Call("read", {"path": path, "page": 8})])
        (result,) = hark.model.requests[-1].messages[-1].parts
        read = getattr(result, "text", "")
        assert "## Page 8\nThis is side 8\n\n## Page 9\nThis is side 9\n[Pages 8 to 9 of 9.]" in read
