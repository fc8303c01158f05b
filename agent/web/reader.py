"""Makes readable text of a page, a PDF or another text. This program is run as a file, in a process of its own.

What it parses is hostile at worst: the process has no secrets, and bounds its own memory and time. Standard input is
one line of JSON, `media`, `charset` and `address`, and then the body; standard output is the text as UTF-8. An exit
code other than 0 means that it cannot be read.
"""

import io
import json
import resource
import sys
from contextlib import suppress
from itertools import islice

MEMORY = 1024**3
CPU_SECONDS = 20
MAX_CHARS = 1_000_000
MAX_PAGES = 300
MAX_LINKS = 100
# A page with fewer characters that look like its text is shown whole.
_SHORT = 300


def _decoded(body: bytes, charset: str) -> str:
    """A text in the first encoding that fits: UTF-8, which nothing else looks like, or what the server said."""
    marked = "utf-16" if body.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    for encoding in (marked, charset):
        with suppress(LookupError, ValueError):
            return body.decode(encoding)
    return body.decode("cp1252", "replace")


def _page(body: bytes, charset: str, address: str) -> str:
    import trafilatura
    from lxml import etree, html  # type: ignore[import-untyped]

    try:
        tree = html.document_fromstring(_decoded(body, charset).encode(), html.HTMLParser(encoding="utf-8"))
    except etree.ParserError:  # it is empty
        return ""
    etree.strip_elements(tree, "script", "style", "template", with_tail=False)
    tree.make_links_absolute(address, handle_failures="ignore")
    title = " ".join((tree.findtext(".//title") or "").split())
    away = (link for link in tree.iter("a") if str(link.get("href")).startswith(("http://", "https://")))
    links = {link.get("href"): " ".join(link.text_content().split())[:100] for link in islice(away, MAX_LINKS)}
    inside = tree.find("body")
    lines = [] if inside is None else html.tostring(inside, method="text", encoding="unicode").splitlines()
    text = trafilatura.extract(tree, output_format="markdown", include_links=True, favor_recall=True) or ""
    if len(text) < _SHORT:
        text = "\n".join(filter(None, (" ".join(line.split()) for line in lines)))
    if links and "](http" not in text:
        shown = (f"- [{words}]({where})" for where, words in links.items())
        text = "\n".join((text, "", "Links:", *shown))
    return text if title in text[:500] else f"# {title}\n\n{text}"


def _pdf(body: bytes) -> str:
    import pypdf

    document = pypdf.PdfReader(io.BytesIO(body))
    pages = [
        f"## Page {at + 1}\n\n{document.pages[at].extract_text()}" for at in range(min(len(document.pages), MAX_PAGES))
    ]
    more = len(document.pages) - len(pages)
    return "\n\n".join((*pages, *([f"({more} more pages were not read.)"] if more else ())))


def read(media: str, charset: str, address: str, body: bytes) -> str:
    """Return the text of a body. Raises ValueError if it is none."""
    if media == "application/pdf" or body.startswith(b"%PDF-"):
        return _pdf(body)
    if b"\0" in body[:1024] and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("binary")
    looks = body[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))
    if media in ("text/html", "application/xhtml+xml") or (not media and looks):
        return _page(body, charset, address)
    return _decoded(body, charset)


def _main() -> None:
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_FSIZE, 0)):
        with suppress(ValueError, OSError):  # this system does not know the bound
            resource.setrlimit(kind, (most, most))
    about = json.loads(sys.stdin.buffer.readline())
    text = read(about["media"], about["charset"], about["address"], sys.stdin.buffer.read())
    sys.stdout.buffer.write(text[:MAX_CHARS].encode(errors="replace"))


if __name__ == "__main__":
    _main()
