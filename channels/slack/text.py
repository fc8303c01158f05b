"""Turns Slack's own markup (mrkdwn or blocks) into the text that people read. Pure."""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

_TOKEN = re.compile(r"<([^<>]+)>")
_MENTION = re.compile(r"<@([UWB][A-Z0-9]+)(?:\|[^>]*)?>")
_GROUP = "<!subteam^"
_AROUND = {"rich_text_quote": "> {}", "rich_text_preformatted": "```\n{}\n```"}
_NAMED = {
    "user": "<@{user_id}>",
    "channel": "<#{channel_id}>",
    "usergroup": _GROUP + "{usergroup_id}|@group>",
    "broadcast": "<!{range}>",
    "emoji": ":{name}:",
}


def mentions(text: str) -> set[str]:
    """The ids of the people whom a text mentions, and a constant if it mentions a user group."""
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
    """The text of blocks in mrkdwn, for a message that has only blocks."""
    return "\n".join(filter(None, map(_said, _objects(blocks))))


def _said(part: dict[str, Any]) -> str:
    """The text of a block or an element of one; empty for buttons and the like."""
    text, inner = part.get("text"), _objects(part.get("elements"))
    match part.get("type"):
        case "rich_text" | "section" | "header" | "context":
            return markup_of([text, *_objects(part.get("fields")), *inner])
        case "table":
            return "\n".join(" | ".join(map(_said, _objects(row))) for row in part.get("rows") or ())
        case "mrkdwn" | "plain_text" | "markdown" | "raw_text" | "raw_number":
            return text if isinstance(text, str) else str(part.get("value") or "")
        case "rich_text_section" | "rich_text_quote" | "rich_text_preformatted" as kind:
            return _AROUND.get(kind, "{}").format("".join(map(_said, inner)))
        case "rich_text_list":
            return "\n".join(f"- {_said(item)}" for item in inner)
        case "text":
            return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        case "link":
            return f"<{part.get('url', '')}|{text}>" if text else f"<{part.get('url', '')}>"
        case kind:
            return _NAMED.get(str(kind), "").format_map(defaultdict(str, part))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
