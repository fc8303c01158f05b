"""Limits of messages: text, blocks and metadata, and whom and what a message would reach besides its readers.

Written from "Block Kit" and "Formatting message text" on docs.slack.dev. `check_blocks` raises the refusal that
Slack answers, with a JSON pointer to the place. The table of a `markdown` block is not translated, its text counts.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.standins.slack_ledger import Json, Refusal, Rule

MAX_TEXT = 40_000
MAX_UPDATE_TEXT = 4_000
MAX_MARKDOWN = 12_000
MAX_BLOCKS = 50
MAX_TABLE = 10_000

# Block type -> the fields that it may have besides type and block_id; None: not checked further.
FIELDS: Mapping[str, frozenset[str] | None] = {
    "actions": frozenset({"elements"}),
    "context": frozenset({"elements"}),
    "context_actions": None,
    "data_table": None,
    "divider": frozenset(),
    "file": None,
    "header": frozenset({"text"}),
    "image": frozenset({"image_url", "alt_text", "title", "slack_file"}),
    "input": None,
    "markdown": frozenset({"text"}),
    "plan": None,
    "rich_text": frozenset({"elements"}),
    "section": frozenset({"text", "fields", "accessory", "expand"}),
    "table": frozenset({"rows", "column_settings"}),
    "task_card": None,
    "video": None,
}
BUTTON = frozenset({"type", "text", "action_id", "value", "url", "style", "confirm", "accessibility_label"})

# What Slack reads as the beginning of something where nothing begins.
CONTROL = re.compile(r"&(?!amp;|lt;|gt;)|<(?!(?:[@#!]|https?://|mailto:|tel:|slack://)[^<>\n]*>)")
_PING = re.compile(r"<(?:@([UW][A-Z0-9]+)|!subteam\^(S[A-Z0-9]+)|!(channel|here|everyone))(?:\|[^>]*)?>")
_NAMED_PING = re.compile(r"(?<![\w@])@(channel|here|everyone)\b")
_LINK = re.compile(r"https?://[^\s<>|\")\]]+")


def check_text(text: str, limit: int = MAX_TEXT) -> None:
    """Raise the refusal of a text that is too long; `limit` counts characters."""
    if len(text) > limit:
        raise Refusal("msg_too_long", rule=Rule.FORMATTING)


def unescaped(text: str, blocks: list[Json]) -> list[str]:
    """Where control characters stand for themselves in a text or in mrkdwn, a few characters of each place."""
    parts = [text, *(one["text"] for one in _objects(blocks) if one.get("type") == "mrkdwn")]
    return [part[match.start() : match.start() + 20] for part in parts for match in CONTROL.finditer(part)]


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
    """The blocks, parsed; raises `invalid_blocks`, `invalid_blocks_format` or `msg_blocks_too_long`."""
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
    if sum(len(block["text"]) for block in value if block["type"] == "markdown") > MAX_MARKDOWN:
        raise Refusal("msg_blocks_too_long", rule=Rule.FORMATTING)
    _check_unique([block["block_id"] for block in value if "block_id" in block], "block_id")
    _check_unique([one["action_id"] for one in buttons(value) if "action_id" in one], "action_id")
    tables = [block for block in value if block["type"] == "table"]
    if len(tables) > 1:
        raise _wrong("only_one_table_allowed", "/blocks")
    if sum(len(text) for table in tables for text in _strings(table["rows"])) > MAX_TABLE:
        raise _wrong(f"a table has at most {MAX_TABLE} characters", "/blocks")
    return value


def _wrong(words: str, pointer: str) -> Refusal:
    return Refusal("invalid_blocks", rule=Rule.FORMATTING, messages=[f"[ERROR] {words} [json-pointer:{pointer}]"])


def _check_unique(ids: list[str], name: str) -> None:
    if len(ids) != len(set(ids)):
        raise _wrong(f"{name} already exists", "/blocks")


def _check_block(block: Any, at: str) -> None:
    kind = str(block.get("type")) if isinstance(block, dict) else "none"
    if kind not in FIELDS:
        raise _wrong(f"unsupported type: {kind}", at)
    allowed = FIELDS[kind]
    extra = set(block) - {"type", "block_id"} - (allowed or set())
    if allowed is not None and extra:
        raise _wrong(f"unexpected field: {min(extra)}", at)
    if not 1 <= len(block.get("block_id", "x")) <= 255:
        raise _wrong("must be less than 256 characters", f"{at}/block_id")
    if kind == "section":
        _check_section(block, at)
    elif kind == "header":
        _check_text_object(block.get("text"), f"{at}/text", 150, ("plain_text",))
    elif kind in ("actions", "context"):
        _check_elements(block, at)
    elif kind == "markdown" and (not isinstance(block.get("text"), str) or not block["text"].strip()):
        raise _wrong("must be more than 0 characters", f"{at}/text")
    elif kind == "image":
        _check_image(block, at)
    elif kind == "table":
        _check_table(block, at)
    elif kind == "rich_text" and not isinstance(block.get("elements"), list):
        raise _wrong("missing required field: elements", at)


def _check_section(block: Json, at: str) -> None:
    fields = block.get("fields", [])
    if "text" not in block and not fields:
        raise _wrong("missing required field: text or fields", at)
    if "text" in block:
        _check_text_object(block["text"], f"{at}/text", 3_000)
    if len(fields) > 10:
        raise _wrong("no more than 10 items allowed", f"{at}/fields")
    for index, one in enumerate(fields):
        _check_text_object(one, f"{at}/fields/{index}", 2_000)
    if block.get("accessory", {}).get("type") == "button":
        _check_button(block["accessory"], f"{at}/accessory")


def _check_elements(block: Json, at: str) -> None:
    elements, most = block.get("elements"), 25 if block["type"] == "actions" else 10
    if not isinstance(elements, list) or not elements:
        raise _wrong("must provide elements", f"{at}/elements")
    if len(elements) > most:
        raise _wrong(f"no more than {most} items allowed", f"{at}/elements")
    for index, element in enumerate(elements):
        where = f"{at}/elements/{index}"
        kind = element.get("type") if isinstance(element, dict) else None
        if block["type"] == "actions" and kind == "button":
            _check_button(element, where)
        elif block["type"] == "context" and kind != "image":
            _check_text_object(element, where, 3_000)


def _check_button(button: Json, at: str) -> None:
    if extra := set(button) - BUTTON:
        raise _wrong(f"unexpected field: {min(extra)}", at)
    _check_text_object(button.get("text"), f"{at}/text", 75, ("plain_text",))
    for name, most in {"action_id": 255, "value": 2_000, "url": 3_000, "accessibility_label": 75}.items():
        if name in button and not (isinstance(button[name], str) and len(button[name]) <= most):
            raise _wrong(f"must be less than {most + 1} characters", f"{at}/{name}")
    if button.get("style", "primary") not in ("primary", "danger"):
        raise _wrong("must be one of: primary, danger", f"{at}/style")


def _check_image(block: Json, at: str) -> None:
    if not block.get("alt_text") or not (block.get("image_url") or block.get("slack_file")):
        raise _wrong("missing required field: alt_text and image_url or slack_file", at)
    for name, most in {"image_url": 3_000, "alt_text": 2_000}.items():
        if len(block.get(name, "")) > most:
            raise _wrong(f"must be less than {most + 1} characters", f"{at}/{name}")


def _check_table(block: Json, at: str) -> None:
    rows = block.get("rows")
    if not isinstance(rows, list) or not 1 <= len(rows) <= 100:
        raise _wrong("must have 1 to 100 rows", f"{at}/rows")
    if any(not isinstance(row, list) or not 1 <= len(row) <= 20 for row in rows):
        raise _wrong("must have 1 to 20 cells", f"{at}/rows")
    if len({len(row) for row in rows}) > 1:
        raise _wrong("all rows must have the same number of cells", f"{at}/rows")
    for row in rows:
        for cell in row:
            kind = cell.get("type")
            if kind not in ("raw_text", "rich_text") or (kind == "raw_text" and not cell.get("text")):
                raise _wrong("must be a rich_text or a raw_text that is not empty", f"{at}/rows")
    if len(block.get("column_settings") or []) > 20:
        raise _wrong("no more than 20 items allowed", f"{at}/column_settings")


def _check_text_object(value: object, at: str, most: int, kinds: tuple[str, ...] = ("plain_text", "mrkdwn")) -> None:
    if not isinstance(value, dict) or value.get("type") not in kinds:
        raise _wrong(f"must be a {' or '.join(kinds)} object", at)
    text = value.get("text")
    if not isinstance(text, str) or not text:
        raise _wrong("must be more than 0 characters", f"{at}/text")
    if len(text) > most:
        raise _wrong(f"must be less than {most + 1} characters", f"{at}/text")
    known = {"type", "text", "emoji"} if value["type"] == "plain_text" else {"type", "text", "verbatim"}
    if extra := set(value) - known:
        raise _wrong(f"unexpected field: {min(extra)}", at)


def buttons(blocks: list[Json]) -> list[Json]:
    """Every button, with the `block_id` of its block if that has one."""
    found = []
    for block in blocks:
        if block["type"] in ("actions", "section"):
            candidates = [*block.get("elements", []), block.get("accessory", {})]
            own = {"block_id": block["block_id"]} if "block_id" in block else {}
            found += [{**own, **one} for one in candidates if one.get("type") == "button"]
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


def pings(text: str, blocks: list[Json], args: Json) -> frozenset[str]:
    """Whom a message notifies, in text or blocks: user ids, group ids, "channel", "here", "everyone"."""
    found: set[str] = set()
    for part in [text, *_live_strings(blocks)]:
        found |= {one for match in _PING.findall(part) for one in match if one}
        if args.get("link_names") or args.get("parse") == "full":
            found |= set(_NAMED_PING.findall(part))
    for element in _rich(blocks):
        if element.get("type") in ("user", "broadcast", "usergroup"):
            found.add(element.get("user_id") or element.get("range") or element.get("usergroup_id") or "")
    return frozenset(found)


def fetched(text: str, blocks: list[Json], args: Json) -> tuple[str, ...]:
    """Addresses that Slack itself loads: pictures always, links unless both unfurl arguments keep it from that.

    `unfurl_links` is off for apps by default, `unfurl_media` is on, and to learn whether a link is media Slack
    must load it.
    """
    found = [block["image_url"] for block in blocks if block.get("image_url")]
    if args.get("unfurl_links") is True or args.get("unfurl_media", True) is not False:
        parts = [text, *_live_strings(blocks), *(one["url"] for one in _rich(blocks) if one.get("type") == "link")]
        found += [link for part in parts for link in _LINK.findall(part)]
    return tuple(dict.fromkeys(found))


def _live_strings(blocks: list[Json]) -> Iterator[str]:
    """Texts in which Slack looks for mentions and links: all but plain_text and raw cells."""
    for value in _objects(blocks):
        if value.get("type") in ("mrkdwn", "markdown") and isinstance(value.get("text"), str):
            yield value["text"]


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
