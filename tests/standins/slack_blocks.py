"""Limits of messages: text, blocks and metadata, and whom and what a message would reach besides its readers.

Written from "Block Kit" and "Formatting message text" on docs.slack.dev. `check_blocks` raises the refusal that
Slack answers, with a JSON pointer to the place.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.standins.slack_ledger import Json, Refusal, Rule

MAX_TEXT = 40_000
MAX_UPDATE_TEXT = 4_000
MAX_BLOCKS = 50

# Of the types of blocks those that Hark sends; each has elements.
TYPES = ("actions", "rich_text")
BUTTON = frozenset({"type", "text", "action_id", "value"})

# What Slack reads as the beginning of something where nothing begins.
CONTROL = re.compile(r"&(?!amp;|lt;|gt;)|<(?!(?:[@#!]|https?://|mailto:|tel:|slack://)[^<>\n]*>)")
_PING = re.compile(r"<(?:@([UW][A-Z0-9]+)|!subteam\^(S[A-Z0-9]+)|!(channel|here|everyone))(?:\|[^>]*)?>")
_LINK = re.compile(r"https?://[^\s<>|\")\]]+")


def check_text(text: str, limit: int = MAX_TEXT) -> None:
    """Raise the refusal of a text that is too long; `limit` counts characters."""
    if len(text) > limit:
        raise Refusal("msg_too_long", rule=Rule.FORMATTING)


def unescaped(text: str) -> list[str]:
    """Where control characters stand for themselves in a text, a few characters of each place."""
    return [text[match.start() : match.start() + 20] for match in CONTROL.finditer(text)]


def check_metadata(value: object) -> Json:
    """An `event_type` and an `event_payload`, as they stand in the argument, parsed or as JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, dict):
        raise Refusal("invalid_metadata_format", rule=Rule.FORMATTING)
    shape = isinstance(value.get("event_type"), str) and isinstance(value.get("event_payload"), dict)
    if not shape or not value["event_type"] or set(value) > {"event_type", "event_payload"}:
        raise Refusal("invalid_metadata_schema", rule=Rule.FORMATTING)
    return value


def check_blocks(value: object) -> list[Json]:
    """The blocks, parsed; raises `invalid_blocks` or `invalid_blocks_format`."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, list):
        raise Refusal("invalid_blocks_format", rule=Rule.FORMATTING)
    if len(value) > MAX_BLOCKS:
        raise _wrong(f"no more than {MAX_BLOCKS} items allowed", "/blocks")
    for index, block in enumerate(value):
        _check_block(block, f"/blocks/{index}")
    _check_unique([block["block_id"] for block in value if "block_id" in block], "block_id")
    _check_unique([one["action_id"] for one in buttons(value) if "action_id" in one], "action_id")
    return value


def _wrong(words: str, pointer: str) -> Refusal:
    return Refusal("invalid_blocks", rule=Rule.FORMATTING, messages=[f"[ERROR] {words} [json-pointer:{pointer}]"])


def _check_unique(ids: list[str], name: str) -> None:
    if len(ids) != len(set(ids)):
        raise _wrong(f"{name} already exists", "/blocks")


def _check_block(block: Any, at: str) -> None:
    kind = str(block.get("type")) if isinstance(block, dict) else "none"
    if kind not in TYPES:
        raise _wrong(f"unsupported type: {kind}", at)
    if extra := set(block) - {"type", "block_id", "elements"}:
        raise _wrong(f"unexpected field: {min(extra)}", at)
    if not 1 <= len(block.get("block_id", "x")) <= 255:
        raise _wrong("must be less than 256 characters", f"{at}/block_id")
    if not isinstance(block.get("elements"), list):
        raise _wrong("missing required field: elements", at)
    if kind == "actions":
        _check_elements(block["elements"], f"{at}/elements")


def _check_elements(elements: list[Any], at: str) -> None:
    if not elements:
        raise _wrong("must provide elements", at)
    if len(elements) > 25:
        raise _wrong("no more than 25 items allowed", at)
    for index, element in enumerate(elements):
        if not isinstance(element, dict) or element.get("type") != "button":
            raise _wrong("unsupported type", f"{at}/{index}")
        _check_button(element, f"{at}/{index}")


def _check_button(button: Json, at: str) -> None:
    if extra := set(button) - BUTTON:
        raise _wrong(f"unexpected field: {min(extra)}", at)
    _check_plain(button.get("text"), f"{at}/text", 75)
    for name, most in {"action_id": 255, "value": 2_000}.items():
        if name in button and not (isinstance(button[name], str) and len(button[name]) <= most):
            raise _wrong(f"must be less than {most + 1} characters", f"{at}/{name}")


def _check_plain(value: object, at: str, most: int) -> None:
    if not isinstance(value, dict) or value.get("type") != "plain_text":
        raise _wrong("must be a plain_text object", at)
    text = value.get("text")
    if not isinstance(text, str) or not text:
        raise _wrong("must be more than 0 characters", f"{at}/text")
    if len(text) > most:
        raise _wrong(f"must be less than {most + 1} characters", f"{at}/text")
    if extra := set(value) - {"type", "text", "emoji"}:
        raise _wrong(f"unexpected field: {min(extra)}", at)


def buttons(blocks: list[Json]) -> list[Json]:
    """Every button, with the `block_id` of its block if that has one."""
    found = []
    for block in blocks:
        if block["type"] == "actions":
            own = {"block_id": block["block_id"]} if "block_id" in block else {}
            found += [{**own, **one} for one in block["elements"]]
    return found


def _strings(value: Any) -> Iterator[str]:
    """Every `text` in blocks that a person reads, in order; those of buttons are left out."""
    if isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict) and value.get("type") != "button":
        for name, inner in value.items():
            if name == "text" and isinstance(inner, str):
                yield inner
            elif isinstance(inner, dict | list):
                yield from _strings(inner)


def shown(text: str, blocks: list[Json]) -> str:
    """What a person reads: the blocks where there are some, one line each, else the text."""
    if not blocks:
        return text
    return "\n".join(line for block in blocks if (line := " ".join(_strings(block))))


def pings(text: str, blocks: list[Json]) -> frozenset[str]:
    """Whom a message notifies, in text or blocks: user ids, group ids, "channel", "here", "everyone"."""
    found: set[str] = set()
    found |= {one for match in _PING.findall(text) for one in match if one}
    for element in _rich(blocks):
        if element.get("type") in ("user", "broadcast", "usergroup"):
            found.add(element.get("user_id") or element.get("range") or element.get("usergroup_id") or "")
    return frozenset(found)


def fetched(text: str, blocks: list[Json], args: Json) -> tuple[str, ...]:
    """Addresses that Slack itself loads: links unless both unfurl arguments keep it from that.

    `unfurl_links` is off for apps by default, `unfurl_media` is on, and to learn whether a link is media Slack
    must load it.
    """
    found: list[str] = []
    if args.get("unfurl_links") is True or args.get("unfurl_media", True) is not False:
        parts = [text, *(one["url"] for one in _rich(blocks) if one.get("type") == "link")]
        found += [link for part in parts for link in _LINK.findall(part)]
    return tuple(dict.fromkeys(found))


def _rich(blocks: list[Json]) -> Iterator[Json]:
    for block in _objects(blocks):
        if block.get("type") == "rich_text":
            yield from _objects(block.get("elements"))


def _objects(value: Any) -> Iterator[Json]:
    if isinstance(value, list):
        for one in value:
            yield from _objects(one)
    elif isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
