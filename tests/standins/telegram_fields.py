"""Parameters of the Bot API methods that the stand-in serves: of those that the documentation lists what Hark sends.

`read_parameters` turns what came in the query, form, JSON or multipart body into typed values. Names that the
table does not list are reported, values of a wrong type are refused.
"""

import json
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

from tests.standins.telegram_ledger import Json, Refusal, Rule


class Kind(Enum):
    INTEGER = auto()
    STRING = auto()
    BOOLEAN = auto()
    CHAT = auto()  # Integer or String
    ANY = auto()  # an object whose own rules are checked elsewhere


INT, STR, BOOL, CHAT, ANY = Kind.INTEGER, Kind.STRING, Kind.BOOLEAN, Kind.CHAT, Kind.ANY

# A mapping is an object with these fields, a one-element list an array of that.
Spec = Kind | Mapping[str, Any] | list[Any]

ENTITY: Spec = {"type": STR, "offset": INT, "length": INT, "url": STR, "language": STR}
REPLY: Spec = {"message_id": INT, "allow_sending_without_reply": BOOL}
TEXT: Mapping[str, Spec] = {
    "chat_id": CHAT,
    "text": STR,
    "entities": [ENTITY],
    "link_preview_options": {"is_disabled": BOOL},
    "reply_markup": ANY,
}
SEND: Mapping[str, Spec] = {"message_thread_id": INT, "disable_notification": BOOL, "reply_parameters": REPLY}
UPLOAD: Mapping[str, Spec] = {
    **SEND,
    "chat_id": CHAT,
    "caption": STR,
    "caption_entities": [ENTITY],
    "reply_markup": ANY,
}
RICH: Spec = {"html": STR, "markdown": STR, "skip_entity_detection": BOOL}
PINNED: Mapping[str, Spec] = {"chat_id": CHAT, "message_id": INT}
TOPIC: Mapping[str, Spec] = {"chat_id": CHAT, "name": STR}

PARAMETERS: Mapping[str, Mapping[str, Spec]] = {
    "getMe": {},
    "getUpdates": {"offset": INT, "limit": INT, "timeout": INT, "allowed_updates": [STR]},
    "setWebhook": {
        "url": STR,
        "max_connections": INT,
        "allowed_updates": [STR],
        "secret_token": STR,
    },
    "deleteWebhook": {"drop_pending_updates": BOOL},
    "getWebhookInfo": {},
    "sendMessage": {**TEXT, **SEND},
    "sendRichMessage": {**SEND, "chat_id": CHAT, "rich_message": RICH, "reply_markup": ANY},
    "sendMessageDraft": {
        "chat_id": CHAT,
        "message_thread_id": INT,
        "draft_id": INT,
        "text": STR,
        "entities": [ENTITY],
    },
    "editMessageText": {**TEXT, "message_id": INT, "rich_message": RICH},
    "sendDocument": {**UPLOAD, "document": ANY},
    "sendPhoto": {**UPLOAD, "photo": ANY},
    "sendVoice": {**UPLOAD, "voice": ANY},
    "deleteMessage": {"chat_id": CHAT, "message_id": INT},
    "sendChatAction": {"chat_id": CHAT, "message_thread_id": INT, "action": STR},
    "setMyCommands": {"commands": [{"command": STR, "description": STR}]},
    "answerCallbackQuery": {"callback_query_id": STR},
    "setMessageReaction": {"chat_id": CHAT, "message_id": INT, "reaction": [{"type": STR, "emoji": STR}]},
    "getFile": {"file_id": STR},
    "getChat": {"chat_id": CHAT},
    "pinChatMessage": {**PINNED, "disable_notification": BOOL},
    "unpinChatMessage": PINNED,
    "createForumTopic": TOPIC,
    "editForumTopic": {**TOPIC, "message_thread_id": INT},
}
BY_LOWER_NAME = {name.lower(): name for name in PARAMETERS}

Complain = Callable[[Rule, str], None]


def read_parameters(method: str, given: Mapping[str, Any], complain: Complain) -> Json:
    """Typed values of the parameters of `method`; unknown ones are reported and left out.

    Raises Refusal (400) for a value of a wrong type.
    """
    return _read_object(given, PARAMETERS[method], method, complain)


def _read_object(given: Mapping[str, Any], fields: Mapping[str, Any], where: str, complain: Complain) -> Json:
    values: Json = {}
    for name, value in given.items():
        if name not in fields:
            complain(Rule.UNKNOWN_FIELD, f"{where}: {name}")
        elif value is not None:
            values[name] = _read(value, fields[name], f"{where}.{name}", complain)
    return values


def _read(value: Any, spec: Spec, where: str, complain: Complain) -> Any:
    if isinstance(spec, Kind):
        return _read_plain(value, spec, where)
    if isinstance(value, str):
        value = _parse(value, where)
    if isinstance(spec, list) and isinstance(value, list):
        return [_read(item, spec[0], f"{where}[{index}]", complain) for index, item in enumerate(value)]
    if isinstance(spec, Mapping) and isinstance(value, Mapping):
        return _read_object(value, spec, where, complain)
    raise _wrong(where, "Array" if isinstance(spec, list) else "Object")


def _read_plain(value: Any, kind: Kind, where: str) -> Any:
    if kind is Kind.ANY:
        return _parse(value, where) if isinstance(value, str) else value
    if kind is Kind.INTEGER or (kind is Kind.CHAT and not str(value).startswith("@")):
        return _integer(value, where)
    if kind is Kind.BOOLEAN:
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("true", "false", "0", "1", "yes", "no"):
            return str(value).lower() in ("true", "1", "yes")
        raise _wrong(where, "Boolean")
    if not isinstance(value, str):
        raise _wrong(where, "String")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise Refusal(400, "Bad Request: strings must be encoded in UTF-8", rule=Rule.FORMATTING)
    return value


def _integer(value: Any, where: str) -> int:
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _wrong(where, "Integer")


def _parse(value: str, where: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        raise Refusal(400, f"Bad Request: can't parse {where} JSON object", rule=Rule.BAD_VALUE) from None


def _wrong(where: str, wanted: str) -> Refusal:
    return Refusal(400, f'Bad Request: field "{where}" must be of type {wanted}', rule=Rule.BAD_VALUE)
