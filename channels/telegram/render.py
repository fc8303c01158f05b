"""What goes out to Telegram: Markdown to the bodies of messages, and deliveries to calls of the Bot API.

A body is JSON with the arguments of the call except the chat. Messages are text with entities and never use a parse
mode, so that Telegram can reject no markup. Link previews are off: Telegram would fetch any address that the model was
made to write.

Where rich messages are enabled (Bot API 10.1: sendRichMessage, InputRichMessage), a block with a table, a task list or
mathematics is sent as one, with its Markdown unchanged, unless something in it would be fetched, mention somebody or be
rendered differently there. A rich message that Telegram refuses is sent again as text with entities.
"""

import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from telegram import InputFile

from channels.manners import PHOTOS
from channels.markdown.formatted import Entity, Formatted, shows, split
from channels.markdown.parse import parse
from channels.markdown.render import render
from channels.message import Place
from channels.outgoing import Action, Delivery, as_body
from channels.telegram.text import COMMENTS
from channels.utf16 import units

MAX_UNITS = 4096
MAX_ENTITIES = 100
FILE_BYTES = 50 * 1024 * 1024
# The argument that marks a body as one of sendRichMessage.
RICH = "rich_message"

_METHODS = {
    Action.SEND: "sendMessage",
    Action.FILE: "sendDocument",
    Action.EDIT: "editMessageText",
    Action.DELETE: "deleteMessage",
    Action.REACT: "setMessageReaction",
}
# The actions that a Telegram channel carries out.
ACTIONS = frozenset(_METHODS)
# The actions whose body was made by `bodies`.
WITH_TEXT = (Action.SEND, Action.EDIT)
_NEW = (Action.SEND, Action.FILE)
_DONE_BEFORE = {Action.EDIT: "message is not modified", Action.DELETE: "message to delete not found"}
_DRAFT_ID = 1  # a draft disappears when its message comes, so a chat has one at a time

# In bytes.
_LARGEST_PHOTO = 10 * 1024 * 1024

_TASK = re.compile(r"^[^\S\n]*+(?:[-*+]|\d+[.)]) \[[ xX]\] ", re.MULTILINE)
# Markdown that a rich message would fetch, show as a mention, or read differently.
_READ_DIFFERENTLY = re.compile(r"!\[|<|==|\[[\^!]|\\[(\[]|tg:", re.IGNORECASE)

_LONGEST_LINK = 2048
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
# A link to a person would mention that person.
_OWN = re.compile(r"tg://(?!user(?:[/?#]|$))[a-z0-9_-]+(?:[/?#].*)?", re.IGNORECASE | re.ASCII)


def bodies(markdown: str, rich: bool = False) -> list[str]:
    """Render a block to the bodies of its messages, in order; none when the block shows nothing.

    rich: whether rich messages are enabled for this account.
    """
    whole = render(markdown, lambda url, words: is_link(url))
    found = [_body(piece) for piece in split(whole, MAX_UNITS, MAX_ENTITIES) if shows(piece.text)]
    if rich and len(found) == 1 and _gains(markdown):
        return [as_body({RICH: {"markdown": markdown, "skip_entity_detection": True}})]
    return found


def plain_body(body: str) -> str | None:
    """Return a body in its next simpler form; None when it is plain text already.

    A rich message becomes text with entities. Text with entities becomes text alone, with the targets of links behind
    their words.
    """
    arguments = json.loads(body)
    if RICH in arguments:
        return bodies(arguments[RICH]["markdown"])[0]
    entities = arguments.pop("entities", None)
    if not entities:
        return None
    text = arguments["text"].encode("utf-16-le")
    for entity in sorted(entities, key=lambda entity: entity["offset"] + entity["length"], reverse=True):
        end = 2 * (entity["offset"] + entity["length"])
        if "url" in entity:
            text = text[:end] + f" ({entity['url']})".encode("utf-16-le") + text[end:]
    if len(text) <= 2 * MAX_UNITS:
        arguments["text"] = text.decode("utf-16-le")
    return as_body(arguments)


def _body(piece: Formatted) -> str:
    arguments: dict[str, object] = {"text": piece.text, "link_preview_options": {"is_disabled": True}}
    if piece.entities:
        arguments["entities"] = [_entity(piece.text, entity) for entity in piece.entities]
    return as_body(arguments)


def _gains(markdown: str) -> bool:
    """Whether a rich message would show more of a block than entities do, and nothing that was not meant."""
    tokens = [inner for token in parse(markdown)[0] for inner in (token, *(token.children or ()))]
    formula = any(token.type in ("code_inline", "fence") and not token.markup for token in tokens)
    table = any(token.type == "table_open" for token in tokens)
    return (table or formula or _TASK.search(markdown) is not None) and not _READ_DIFFERENTLY.search(markdown)


def _entity(text: str, entity: Entity) -> dict[str, str | int]:
    """An entity as Telegram takes it: with its position in UTF-16 units."""
    start, end, style = entity
    more = {"url": style.url, "language": style.language}
    shown = {"type": style.type.value, "offset": units(text[:start]), "length": units(text[start:end])}
    return shown | {name: value for name, value in more.items() if value}


def is_link(url: str) -> bool:
    """Whether an address may be the target of a `text_link`; one that may not refuses the whole message.

    The rules are those of tdlib, on which the Bot API server is built (`LinkManager`, `HttpUrl`), but a little
    stricter: http, https or tg, a host with a dot, and a valid port.
    """
    if len(url) > _LONGEST_LINK or any(letter.isspace() for letter in url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme == "tg":
        return _OWN.fullmatch(url) is not None
    plain = parts.scheme in ("http", "https") and port != 0 and "@" not in parts.netloc
    return plain and _HOST.fullmatch(parts.hostname or "") is not None


def call_of(delivery: Delivery) -> tuple[str, dict[str, object]]:
    """The method of the Bot API that makes a delivery, and its arguments. Blocking when the delivery has a file.

    Raises ValueError when the body or the id of a message cannot be read, OSError when a file cannot be read.
    """
    method = _METHODS[delivery.action]
    arguments: dict[str, object] = json.loads(delivery.body) if delivery.action in WITH_TEXT else {}
    if delivery.action is Action.SEND:
        method = "sendRichMessage" if RICH in arguments else method
        arguments = addressed(delivery.place, arguments)
    elif delivery.action is Action.FILE:
        method, arguments = _file(delivery)
    elif delivery.action is Action.REACT:
        arguments = reaction(delivery.place, delivery.target, delivery.body)
    else:
        arguments |= {"chat_id": delivery.place.chat, "message_id": int(delivery.target)}
    # what stands below a channel's post is a reply to it, because a thread of Telegram is a topic
    answers = delivery.reply_to or delivery.place.thread.partition(COMMENTS)[2]
    if answers and delivery.action in _NEW:  # also if that message was deleted meanwhile
        message_id = int(answers)
        arguments["reply_parameters"] = {"message_id": message_id, "allow_sending_without_reply": True}
    if delivery.silent and delivery.action in _NEW:
        arguments["disable_notification"] = True
    if delivery.buttons:  # one in a row: side by side their labels are cut off on a phone
        rows = [[{"text": button.label, "callback_data": button.sends}] for button in delivery.buttons]
        arguments["reply_markup"] = {"inline_keyboard": rows}
    return method, arguments


def reaction(place: Place, target: str, emoji: str) -> dict[str, object]:
    """The arguments of a reaction; an empty emoji takes it away. Raises ValueError for a target that is no id."""
    emoji = emoji.replace("\ufe0f", "")  # Telegram knows emoji without the variation selector
    shown = [{"type": "emoji", "emoji": emoji}] if emoji else []
    return {"chat_id": place.chat, "message_id": int(target), "reaction": shown}


def frame_of(place: Place, target: str, body: str) -> tuple[str, dict[str, object]]:
    """The method that shows one state of a preview, and its arguments; see `channels.base.Channel.frame`."""
    arguments: dict[str, object] = json.loads(body)
    if target:
        return "editMessageText", arguments | {"chat_id": place.chat, "message_id": int(target)}
    if RICH in arguments:
        arguments = json.loads(plain_body(body) or body)
    del arguments["link_preview_options"]
    return "sendMessageDraft", addressed(place, arguments | {"draft_id": _DRAFT_ID})


def _file(delivery: Delivery) -> tuple[str, dict[str, object]]:
    """The call that sends a file: as a voice message or a photo where it is one, else as a document. Blocking."""
    if delivery.file is None:
        raise ValueError("there is no file")
    with delivery.file.open() as file:
        held = file.read()
    shown = delivery.file.mime in PHOTOS and len(held) <= _LARGEST_PHOTO
    method, field = ("sendPhoto", "photo") if shown else ("sendDocument", "document")
    if delivery.file.says:
        method, field = "sendVoice", "voice"
    body = json.loads(delivery.body) if delivery.body else {}
    caption = {"caption": body.get("text", ""), "caption_entities": body.get("entities", [])}
    content = InputFile(held, filename=delivery.file.name)
    return method, addressed(delivery.place, {field: content} | {name: what for name, what in caption.items() if what})


def addressed(place: Place, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a call, with the chat and the topic that it goes to added."""
    in_topic = place.thread and not place.thread.startswith(COMMENTS)
    thread = {"message_thread_id": place.thread} if in_topic else {}
    return {**arguments, "chat_id": place.chat, **thread}


def done_before(action: Action, reason: str) -> bool:
    """Whether the reason of a refusal says that the action was carried out before."""
    return action in _DONE_BEFORE and _DONE_BEFORE[action] in reason
