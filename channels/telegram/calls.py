"""A delivery as a call of the Bot API, and which refusals of a call mean that it was done before."""

import json
from collections.abc import Mapping

from telegram import InputFile

from channels.message import Place
from channels.outgoing import Action, Delivery
from channels.telegram.render import RICH, plain_body

_METHODS = {
    Action.SEND: "sendMessage",
    Action.FILE: "sendDocument",
    Action.EDIT: "editMessageText",
    Action.DELETE: "deleteMessage",
    Action.REACT: "setMessageReaction",
}
_DONE_BEFORE = {Action.EDIT: "message is not modified", Action.DELETE: "message to delete not found"}

_SHOWN = ("image/jpeg", "image/png", "image/webp")
_LARGEST_SHOWN = 10 * 1024 * 1024
FILE_BYTES = 50 * 1024 * 1024

# What a Telegram channel carries out.
ACTIONS = frozenset(_METHODS)
# Those whose body is what `render` made.
WITH_TEXT = (Action.SEND, Action.EDIT)
_NEW = (Action.SEND, Action.FILE)
_DRAFT_ID = 1  # a draft goes when its message comes, so a chat has one at a time


def call_of(delivery: Delivery) -> tuple[str, dict[str, object]]:
    """Method and arguments.

    Raises ValueError where body or ids of messages cannot be read, OSError where a file cannot be. Blocking.
    """
    method = _METHODS[delivery.action]
    arguments: dict[str, object] = json.loads(delivery.body) if delivery.action in WITH_TEXT else {}
    if delivery.action is Action.SEND:
        method = "sendRichMessage" if RICH in arguments else method
        arguments = addressed(delivery.place, arguments)
    elif delivery.action is Action.FILE:
        method, arguments = _file(delivery)
    else:
        arguments |= {"chat_id": delivery.place.chat, "message_id": int(delivery.target)}
    if delivery.action is Action.REACT:  # known without the sign that asks for a picture
        emoji = delivery.body.replace("\ufe0f", "")
        arguments["reaction"] = [{"type": "emoji", "emoji": emoji}] if emoji else []
    if delivery.reply_to and delivery.action in _NEW:  # what was deleted meanwhile is answered all the same
        message_id = int(delivery.reply_to)
        arguments["reply_parameters"] = {"message_id": message_id, "allow_sending_without_reply": True}
    if delivery.silent and delivery.action in _NEW:
        arguments["disable_notification"] = True
    if delivery.buttons:  # below each other: beside each other their labels are cut on a phone
        rows = [[{"text": button.label, "callback_data": button.sends}] for button in delivery.buttons]
        arguments["reply_markup"] = {"inline_keyboard": rows}
    return method, arguments


def frame_of(place: Place, target: str, body: str) -> tuple[str, dict[str, object]]:
    """Method and arguments of a frame of a preview; see `channels.base.Channel.frame`."""
    arguments: dict[str, object] = json.loads(body)
    if target:
        return "editMessageText", arguments | {"chat_id": place.chat, "message_id": int(target)}
    if RICH in arguments:
        arguments = json.loads(plain_body(body) or body)
    del arguments["link_preview_options"]
    return "sendMessageDraft", addressed(place, arguments | {"draft_id": _DRAFT_ID})


def _file(delivery: Delivery) -> tuple[str, dict[str, object]]:
    """Images are shown, where they are not too large for that; everything else is to be saved. Blocking."""
    if delivery.file is None:
        raise ValueError("there is no file")
    with delivery.file.open() as file:
        held = file.read()
    shown = delivery.file.mime in _SHOWN and len(held) <= _LARGEST_SHOWN
    method, field = ("sendPhoto", "photo") if shown else ("sendDocument", "document")
    body = json.loads(delivery.body) if delivery.body else {}
    caption = {"caption": body.get("text", ""), "caption_entities": body.get("entities", [])}
    content = InputFile(held, filename=delivery.file.name)
    return method, addressed(delivery.place, {field: content} | {name: what for name, what in caption.items() if what})


def addressed(place: Place, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a call with the chat and the topic it goes to."""
    thread = {"message_thread_id": place.thread} if place.thread else {}
    return {**arguments, "chat_id": place.chat, **thread}


def done_before(action: Action, reason: str) -> bool:
    """Whether a refusal says that there is nothing left to do."""
    return action in _DONE_BEFORE and _DONE_BEFORE[action] in reason
