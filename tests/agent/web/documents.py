"""Pages and documents for tests."""

ARTICLE = """<!doctype html><html><head><meta charset="utf-8"><title>About moss</title><base href="/wiki/">
<script>var secret = 1;</script><style>p {{}}</style></head><body>
<nav><a href="/home">Home</a><a href="/login">Login</a></nav>
<main><h1>About moss</h1><p>Moss grows on the north side of {words}, as <a href="trees.html?a=1&amp;b=2">the page on
trees</a> and <a href="//other.test/Moss_(plant)">another one</a> say. <a href="mailto:x@y">Write</a></p>
<ul><li>first</li><li>second</li></ul><pre>if a &lt; b: grow()</pre></main>
<footer>Cookies</footer></body></html>"""
WORDS = "many trees, stones and roofs, which somebody has looked at for a long time, " * 6


def article(words: str = WORDS) -> str:
    """A page with a text, links and what surrounds it."""
    return ARTICLE.format(words=words)


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, text in enumerate(pages):
        stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * at} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, offsets = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    tail = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + (head + table + tail).encode()
