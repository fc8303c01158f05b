"""A delivery as a call of the Bot API, and which refusals of a call mean that it was done before."""

import json
from collections.abc import Mapping

from channels.message import Place
from channels.outgoing import Action, Delivery
from channels.telegram.render import RICH

_METHODS = {
    Action.SEND: "sendMessage",
    Action.EDIT: "editMessageText",
    Action.DELETE: "deleteMessage",
    Action.REACT: "setMessageReaction",
}
_DONE_BEFORE = {Action.EDIT: "message is not modified", Action.DELETE: "message to delete not found"}

ACTIONS = frozenset(_METHODS)
"""What a Telegram channel carries out."""
WITH_TEXT = (Action.SEND, Action.EDIT)
"""Those whose body is what `render` made."""


def call_of(delivery: Delivery) -> tuple[str, dict[str, object]]:
    """Method and arguments. Raises ValueError where body or ids of messages cannot be read."""
    arguments: dict[str, object] = json.loads(delivery.body) if delivery.action in WITH_TEXT else {}
    if delivery.action is Action.SEND:
        arguments = addressed(delivery.place, arguments)
    else:
        arguments |= {"chat_id": delivery.place.chat, "message_id": int(delivery.target)}
    if delivery.action is Action.REACT:
        arguments["reaction"] = [{"type": "emoji", "emoji": delivery.body}] if delivery.body else []
    if delivery.reply_to:  # what was deleted meanwhile is answered all the same
        message_id = int(delivery.reply_to)
        arguments["reply_parameters"] = {"message_id": message_id, "allow_sending_without_reply": True}
    if delivery.silent:
        arguments["disable_notification"] = True
    if delivery.buttons:  # below each other: beside each other their labels are cut on a phone
        rows = [[{"text": button.label, "callback_data": button.sends}] for button in delivery.buttons]
        arguments["reply_markup"] = {"inline_keyboard": rows}
    method = "sendRichMessage" if delivery.action is Action.SEND and RICH in arguments else _METHODS[delivery.action]
    return method, arguments


def addressed(place: Place, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a call with the chat and the topic it goes to."""
    thread = {"message_thread_id": place.thread} if place.thread else {}
    return {**arguments, "chat_id": place.chat, **thread}


def done_before(action: Action, reason: str) -> bool:
    """Whether a refusal says that there is nothing left to do."""
    return action in _DONE_BEFORE and _DONE_BEFORE[action] in reason
