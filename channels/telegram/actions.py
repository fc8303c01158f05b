"""The actions of the model on Telegram that make no delivery. Bots cannot read the history there."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from channels.actions import ActionFailed, Arguments, details
from channels.failures import ApiError
from channels.message import Place

# The method of each action, and the right that it needs in a group.
_CALLS = {
    "pin": ("pinChatMessage", "Pin Messages"),
    "unpin": ("unpinChatMessage", "Pin Messages"),
    "topic_create": ("createForumTopic", "Manage Topics"),
    "topic_edit": ("editForumTopic", "Manage Topics"),
    "chat_info": ("getChat", ""),
}
_TOLD = "id type title first_name last_name username bio description is_forum"


async def perform(
    call: Callable[[str, Mapping[str, object]], Awaitable[Any]], name: str, place: Place, arguments: Arguments
) -> str:
    """Carry out an action; returns its result for the model. Raises ApiError, and ActionFailed for bad arguments."""
    asked: dict[str, object] = {"chat_id": place.chat}
    if name in ("pin", "unpin"):
        asked["message_id"] = _number(arguments.message_id, "message_id")
    if name == "pin":  # a pin would call everybody
        asked["disable_notification"] = True
    if name == "topic_edit":
        asked["message_thread_id"] = _number(arguments.thread or place.thread, "thread")
    if name in ("topic_create", "topic_edit"):
        asked["name"] = arguments.name
    method, right = _CALLS[name]
    try:
        answer = await call(method, asked)
    except ApiError as error:
        if "rights" in error.reason or "ADMIN_REQUIRED" in error.reason:
            reason = f"{error.reason}; an administrator has to give the bot the right {right}"
            raise replace(error, reason=reason) from None
        raise
    if name == "topic_create":
        return f"Done: thread {answer['message_thread_id']}"
    if name == "chat_info":
        return details(answer, _TOLD)
    return "Done."


def _number(value: str, name: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise ActionFailed(f"{name} has to be the id of one, a whole number")
    return int(value)
