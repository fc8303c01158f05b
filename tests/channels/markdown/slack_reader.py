"""A Slack message as a client shows it: its blocks. An oracle."""

from typing import Any

from tests.channels.markdown.reading import Seen, seen

_STYLES = {"bold": "bold", "italic": "italic", "strike": "strikethrough", "code": "code"}
_ELEMENTS = {"rich_text_section": set(), "rich_text_preformatted": {"pre"}, "rich_text_quote": {"quote"}}


def read(body: dict[str, Any]) -> Seen:
    """The characters of a message."""
    found: Seen = []
    for block in body["blocks"]:
        assert block["type"] == "rich_text"
        for element in block["elements"]:
            for part in element["elements"]:
                looks = {_STYLES[name] for name, is_on in part.get("style", {}).items() if is_on}
                looks |= {"link"} if part["type"] == "link" else set()
                found += seen(part["text"], looks | _ELEMENTS[element["type"]])
    return found
