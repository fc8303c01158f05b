"""Slack's own markup of a message as people read it, whether it comes as text or as blocks. Pure."""

import re
from collections.abc import Callable
from typing import Any

_TOKEN = re.compile(r"<([^<>]+)>")
_MENTION = re.compile(r"<@([UWB][A-Z0-9]+)(?:\|[^>]*)?>")
_GROUP = "<!subteam^"


def mentions(text: str) -> set[str]:
    """Ids of the people, and of one group of people, whom a text in Slack's markup names."""
    return {*_MENTION.findall(text), *([_GROUP] if _GROUP in text else [])}


def without_first(text: str, person: str) -> str:
    """A text without a mention of that person at its beginning."""
    return re.sub(rf"^\s*<@{re.escape(person)}(?:\|[^>]*)?>[\s,:]*", "", text)


def readable(text: str, name_of: Callable[[str], str]) -> str:
    """A text in Slack's markup as people read it. name_of: the name of a person or a channel, empty if unknown."""

    def words(match: re.Match[str]) -> str:
        target, _, label = match[1].partition("|")
        if target.startswith(("@", "#")):
            return target[0] + (name_of(target[1:]) or label or target[1:])
        if target.startswith("!"):
            name = label or target[1:].partition("^")[0]
            return name if target.startswith("!date") or name.startswith("@") else f"@{name}"
        address = target.removeprefix("mailto:")
        return f"{label} ({address})" if label and label not in address else address

    return _TOKEN.sub(words, text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def markup_of(blocks: Any) -> str:
    """The text of blocks in Slack's markup, for a message that has them alone."""
    return "\n".join(line for line in map(_block, _objects(blocks)) if line)


def _block(block: dict[str, Any]) -> str:
    inner = _objects(block.get("elements"))
    match block.get("type"):
        case "rich_text":
            return markup_of(inner)
        case "rich_text_section":
            return "".join(map(_element, inner))
        case "rich_text_list":
            return "\n".join(f"- {_block(item)}" for item in inner)
        case "rich_text_quote":
            return "> " + "".join(map(_element, inner))
        case "rich_text_preformatted":
            return "```\n" + "".join(map(_element, inner)) + "\n```"
        case "section" | "header" | "markdown" | "context":
            parts = [block, *_objects(block.get("fields")), *inner]
            return "\n".join(filter(None, map(_words, parts)))
    return ""


def _words(part: dict[str, Any]) -> str:
    """What a part says: its text stands in it, or in an object of its own."""
    text = part.get("text")
    return _words(text) if isinstance(text, dict) else text if isinstance(text, str) else ""


def _element(element: dict[str, Any]) -> str:
    kind, text = element.get("type"), str(element.get("text", ""))
    if kind == "link":
        url = str(element.get("url", ""))
        return f"<{url}|{text}>" if text else f"<{url}>"
    if kind in ("user", "channel"):
        return f"<{'@' if kind == 'user' else '#'}{element.get(f'{kind}_id', '')}>"
    if kind == "usergroup":
        return f"{_GROUP}{element.get('usergroup_id', '')}|@group>"
    if kind == "broadcast":
        return f"<!{element.get('range', '')}>"
    if kind == "emoji":
        return f":{element.get('name', '')}:"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
