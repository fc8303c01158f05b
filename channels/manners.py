"""The manners of a delivery, from fine to plain: topic or thread, reply, voice message, photo.

They never decide whether the content arrives. When a platform refuses a manner, `Adapter.send` calls again without it.
That is not stored: after a crash the delivery is sent with all its manners again, and the same steps are found again.
"""

import re
from dataclasses import replace
from enum import StrEnum

from channels.failures import ApiError, Trouble
from channels.outgoing import Action, Delivery

# Types of images that are sent as photos where a platform has photos.
PHOTOS = ("image/jpeg", "image/png", "image/webp")


class Manner(StrEnum):
    """How a delivery is shown, besides its content."""

    THREAD = "thread"
    REPLY = "reply"
    VOICE = "voice"
    PHOTO = "photo"


# Any refusal but one that says that nothing arrives in that chat.
_ANY = r"^(?!.*(?:chat not found|bot was|deactivated|CHAT_WRITE_FORBIDDEN|\b(?:10003|50001|50007)\b))"
# Platform, manner, and the refusals (code and words) after which it is given up. The first row counts that fits and
# whose manner the delivery has. Sources: tdlib/telegram-bot-api 447 and 798, openclaw 1725 and 79408, hermes-agent
# 19714 and 98285; Slack's errors of chat.postMessage; Discord's JSON error codes.
STEPS = (
    ("telegram", Manner.THREAD, r"thread not found|topic.?(?:closed|deleted|id_invalid|not.found)|not a forum"),
    ("telegram", Manner.REPLY, r"repl(?:y|ied)|quote|thread not found|topic.?(?:closed|deleted)"),
    ("telegram", Manner.VOICE, _ANY),
    ("telegram", Manner.PHOTO, _ANY),
    (
        "slack",
        Manner.THREAD,
        r"cannot_reply_to_message|thread_not_found|invalid_thread_ts|non_threadable|thread_locked|^message_not_found",
    ),
    ("discord", Manner.THREAD, r"^(?:50083|160005|160006|no thread)\b"),
    ("discord", Manner.REPLY, r"^160002\b|message_reference|REPLIES_"),
    ("discord", Manner.VOICE, _ANY),
    ("discord", Manner.REPLY, _ANY),
)


def plainer(delivery: Delivery, error: ApiError) -> tuple[Delivery, Manner] | None:
    """Return a delivery without the manner for which a call was refused, and that manner; None: it has no such."""
    if error.trouble is not Trouble.REFUSED or delivery.action not in (Action.SEND, Action.FILE):
        return None
    said = f"{error.code or ''} {error.reason}".strip()
    for channel, manner, refusal in STEPS:
        if channel == delivery.place.channel and re.search(refusal, said, re.IGNORECASE):
            plain = _without(delivery, manner)
            if plain != delivery:
                return plain, manner
    return None


def _without(delivery: Delivery, manner: Manner) -> Delivery:
    place, file = delivery.place, delivery.file
    match manner:
        case Manner.THREAD if place.thread:  # on Discord a thread has the id of the message that it was opened on
            below = place.thread if place.channel == "discord" else ""
            return replace(delivery, place=replace(place, thread=""), reply_to=below)
        case Manner.REPLY:
            return replace(delivery, reply_to="")
        case Manner.VOICE if file:
            return replace(delivery, file=replace(file, says=""))
        case Manner.PHOTO if file and file.mime in PHOTOS:
            return replace(delivery, file=replace(file, mime=""))
    return delivery
