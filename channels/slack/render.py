"""Markdown to the bodies of chat.postMessage, without previews of links."""

import json

MAX_UNITS = 4000


def bodies(markdown: str) -> list[str]:
    """The messages of a block, in order; none when it shows nothing."""
    text = markdown.strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    parts = [text[at : at + MAX_UNITS // 2] for at in range(0, len(text), MAX_UNITS // 2)]
    return [_json({"text": part, "unfurl_links": False, "unfurl_media": False}) for part in parts]


def plain_body(body: str) -> str | None:
    """A message without its blocks; None when it has none."""
    arguments = json.loads(body)
    return _json(arguments) if arguments.pop("blocks", None) else None


def _json(arguments: dict[str, object]) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
