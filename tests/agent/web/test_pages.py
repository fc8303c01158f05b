"""What pages and documents say, as text, and for how long it is kept."""

import asyncio
import inspect
import json
import os
from pathlib import Path

import pytest

from agent.web import reader
from agent.web.fetch import Answer
from agent.web.pages import KEPT_SECONDS, Kept, readable
from agent.web.reach import WebError
from tests.agent.web.documents import article, pdf
from tests.watch import PATIENCE, LoopTime

AT = "https://page.test/deep/moss.html"


async def text(body: bytes, media: str = "text/plain", charset: str = "", seconds: float = 30) -> str:
    return await readable(Answer(200, AT, media, charset, body), seconds)


async def test_a_page_is_its_text_with_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk")
    said = await text(article().encode(), "text/html")
    assert said.startswith("# About moss\n")
    assert "Moss grows on the north side of many trees" in said
    assert "](https://page.test/wiki/trees.html?a=1&b=2)" in said
    assert "](https://other.test/Moss_(plant))" in said
    assert "- first" in said
    assert "if a < b: grow()" in said
    for absent in ("secret", "Login", "Cookies"):
        assert absent not in said


async def test_a_pdf_is_the_text_of_its_pages() -> None:
    said = await text(pdf("Moss grows.", "On stones."), "application/pdf")
    assert said.split("\n\n") == ["## Page 1", "Moss grows.", "## Page 2", "On stones."]
    assert await text(pdf("Moss."), "application/xml") == "## Page 1\n\nMoss."  # whatever its server says


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (b"%PDF-1.7 and nothing more", "application/pdf"),
        (pdf("Moss.")[:300], "application/pdf"),
        (b"\x00\x01\x02", "text/plain"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "text/html"),
    ],
    ids=["no pdf", "cut pdf", "binary", "picture"],
)
async def test_what_cannot_be_read_is_said(body: bytes, media: str) -> None:
    with pytest.raises(WebError, match=f"cannot be read as {media}"):
        await text(body, media)


async def test_json_and_other_texts_stay_as_they_are() -> None:
    said = json.dumps({"a": ["<b>", "ü"]}, ensure_ascii=False)
    assert await text(said.encode(), "application/json") == said
    assert await text(b"a\n\tb  \n", "text/plain") == "a\n\tb  \n"
    assert await text(b"") == ""


@pytest.mark.parametrize(
    ("encoded", "charset"),
    [
        ("utf-8", "utf-8"),
        ("utf-8", ""),
        ("utf-8", "iso-8859-1"),
        ("utf-8-sig", "no-such-thing"),
        ("utf-16", "utf-8"),
        ("cp1251", "windows-1251"),
        ("koi8-r", "koi8-r"),
    ],
)
def test_the_encoding_is_found_also_where_the_server_is_wrong(encoded: str, charset: str) -> None:
    assert reader.read("text/plain", charset, AT, "Мох растёт".encode(encoded)) == "Мох растёт"
    assert "Мох растёт" in reader.read("text/html", charset, AT, f"<html><body>{'Мох растёт. ' * 40}".encode(encoded))


@pytest.mark.parametrize("charset", ["no-such-thing", "zlib", "rot13", "", "hex"])
def test_a_text_in_an_unknown_encoding_is_read_as_well_as_it_goes(charset: str) -> None:
    assert reader.read("text/plain", charset, AT, "grüße".encode("latin-1")) == "grüße"


def test_a_page_that_is_hardly_a_text_is_shown_with_all_its_links() -> None:
    rows = "".join(f"<tr><td><a href='item{number}'>Item {number}</a></td></tr>" for number in range(250))
    said = reader.read("text/html", "", AT, f"<html><body><table>{rows}</table>".encode())
    assert "- [Item 3](https://page.test/deep/item3)" in said
    assert said.count("](https://page.test/deep/item") == reader.MAX_LINKS
    assert reader.read(
        "", "", AT, b"<!DOCTYPE html><script>x</script><title>T</title><p>Hi <a href='x'>there</a>"
    ).splitlines() == [*("# T", "", "Hi there", "", "Links:", "- [there](https://page.test/deep/x)")]
    assert reader.read("text/html", "", AT, b"<p>Hi") == "Hi"
    for nothing in (b"", b"   ", b"<html></html>", b"<?xml version='1.0' encoding='utf-8'?><html/>"):
        assert reader.read("text/html", "", AT, nothing).strip() == ""


def test_a_long_pdf_ends_at_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_PAGES", 2)
    said = reader.read("application/pdf", "", AT, pdf(*"abcde"))
    assert said.endswith("## Page 2\n\nb\n\n(3 more pages were not read.)")


async def test_the_process_is_bounded_has_no_environment_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk")
    program = tmp_path / "reader.py"
    monkeypatch.setattr("agent.web.pages._PROGRAM", program)
    program.write_text("import os, sys; sys.stdin.read(); print(sorted(os.environ), os.getcwd(), sys.flags.isolated)")
    said = await text(b"x")
    assert "KEY" not in said
    assert said.endswith("/ 1\n")
    begun, pid, time = tmp_path / "begun", tmp_path / "pid", LoopTime()
    program.write_text(
        f"import os, time\nopen({str(begun)!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({str(begun)!r}, {str(pid)!r})\ntime.sleep(600)"
    )
    reading = asyncio.create_task(text(b"x", seconds=2 * PATIENCE))
    async with asyncio.timeout(PATIENCE):
        while not pid.exists():  # noqa: ASYNC110
            await asyncio.sleep(0)
    await time.advance(2 * PATIENCE)
    with pytest.raises(WebError, match=f"could not be read within {2 * PATIENCE:g} seconds"):
        await reading
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "reader.py"
    source = inspect.getsource(reader)
    program.write_text(source.replace("    about =", "    len(bytes(2 * 1024**3))\n    about ="))
    monkeypatch.setattr("agent.web.pages._PROGRAM", program)
    with pytest.raises(WebError, match="cannot be read"):
        await text(b"x")


def test_a_text_is_kept_for_some_minutes() -> None:
    now = [100.0]
    kept = Kept(lambda: now[0])
    assert kept.get(AT) == ""
    kept.put(AT, "one")
    now[0] += KEPT_SECONDS - 1
    assert (kept.get(AT), kept.get(f"{AT}?other")) == ("one", "")
    kept.put(f"{AT}?other", "two")
    now[0] += 1
    assert (kept.get(AT), kept.get(f"{AT}?other")) == ("", "two")
    kept.put(AT, "three")
    assert kept.get(AT) == "three"


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.web.pages.KEPT_CHARS", 10_000)
    kept = Kept(lambda: 0.0)
    for name in "abcde":
        kept.put(name, "x" * 2000)
    assert [name for name in "abcde" if kept.get(name)] == ["c", "d", "e"]
    kept.put("c", "x" * 2000)  # which makes it the newest
    kept.put("f", "x" * 2000)
    assert [name for name in "abcdef" if kept.get(name)] == ["c", "e", "f"]
    kept.put("huge", "x" * 20_000)
    assert [name for name in ("c", "e", "f", "huge") if kept.get(name)] == ["huge"]
