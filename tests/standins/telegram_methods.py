"""The methods of the Bot API that the stand-in serves, one function each, on the state of a `World`.

A function takes typed parameters (telegram_fields), returns the `result` of the answer or raises `Refusal`;
descriptions of errors are worded as Telegram words them.
"""

import re
from collections.abc import Callable

from tests.standins import telegram_links as links
from tests.standins import telegram_updates as payloads
from tests.standins.telegram_files import check_upload, too_tall
from tests.standins.telegram_ledger import Json, Refusal, Rule, Sent
from tests.standins.telegram_text import check_text
from tests.standins.telegram_updates import Room
from tests.standins.telegram_world import Poll, World

MAX_POLL_SECONDS = 50
MAX_DOWNLOAD = 20 * 1024 * 1024
_ACTIONS = (
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document choose_sticker"
    " find_location record_video_note upload_video_note"
)
_REACTIONS = (
    "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤\u200d🔥 🌚 🌭 💯"
    " 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡"
    " 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u200d♂ 🤷 🤷\u200d♀ 😡"
)
ACTIONS = frozenset(_ACTIONS.split())
REACTIONS = frozenset(_REACTIONS.split())
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
OTHER_POLLER = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)


def _bad(what: str, rule: Rule | None = None) -> Refusal:
    return Refusal(400, f"Bad Request: {what}", rule=rule)


# Getting updates


async def get_updates(world: World, params: Json, alive: Callable[[], bool]) -> list[Json]:
    """Long poll; `alive` says whether the client still listens."""
    if world.webhook:
        raise Refusal(409, WEBHOOK_ACTIVE)
    limit, seconds = params.get("limit", 100), params.get("timeout", 0)
    if not 1 <= limit <= 100:
        world.ledger.complain(Rule.BAD_VALUE, f"getUpdates.limit {limit}")
    if seconds < 0:
        world.ledger.complain(Rule.BAD_VALUE, f"getUpdates.timeout {seconds}")
    _allow_updates(world, params)
    poll = Poll(params.get("offset", 0), min(max(limit, 1), 100), alive)
    if not 0 <= poll.offset <= world.last_update_id + 1:
        world.ledger.complain(Rule.BAD_VALUE, f"getUpdates.offset {poll.offset} is of no update")
    _end_poll(world, Refusal(409, OTHER_POLLER), Rule.SECOND_POLLER)
    world.polls.append(poll)
    world.poll = poll
    world.confirm(poll.offset)
    await world.ledger.wait(
        lambda: bool(poll.ended or world.queue or world.again), min(max(seconds, 0), MAX_POLL_SECONDS)
    )
    if poll.ended is not None:
        raise poll.ended
    world.poll = None
    updates = (world.again + world.queue)[: poll.limit]
    world.again = world.again[len(updates) :]
    poll.answered = [update["update_id"] for update in updates]
    return updates


def _end_poll(world: World, reason: Refusal, rule: Rule | None) -> None:
    """Terminate the poll that waits; one whose client has gone away offends nobody."""
    poll, world.poll = world.poll, None
    if poll is None:
        return
    poll.ended = reason
    if rule and poll.alive():
        world.ledger.complain(rule, reason.description)
    world.ledger.changed()


def _allow_updates(world: World, params: Json) -> None:
    if "allowed_updates" not in params:
        return
    kinds = frozenset(params["allowed_updates"])
    unknown = kinds - frozenset(payloads.UPDATE_KINDS)
    if unknown:
        world.ledger.complain(Rule.BAD_VALUE, f"allowed_updates {sorted(unknown)}")
    world.allowed_updates = kinds or frozenset(payloads.UPDATE_KINDS) - payloads.ONLY_WHEN_NAMED


def set_webhook(world: World, params: Json) -> bool:
    url = params.get("url", "")
    if not url:
        return delete_webhook(world, params)
    if not url.startswith("https://"):
        raise _bad("bad webhook: An HTTPS URL must be provided for webhook", Rule.BAD_VALUE)
    if not re.fullmatch(r"[A-Za-z0-9_-]{0,256}", params.get("secret_token", "")):
        raise _bad("secret token contains unallowed characters", Rule.BAD_VALUE)
    _end_poll(world, Refusal(409, "Conflict: terminated by setWebhook request"), None)
    _allow_updates(world, params)
    if params.get("drop_pending_updates"):
        world.queue = []
    world.webhook = {"url": url, "max_connections": params.get("max_connections", 40)}
    world.webhook_secret = params.get("secret_token", "")
    return True


def delete_webhook(world: World, params: Json) -> bool:
    if params.get("drop_pending_updates"):
        world.queue = []
    world.webhook = {}
    return True


def get_webhook_info(world: World, _params: Json) -> Json:
    return {
        "url": "",
        "has_custom_certificate": False,
        "pending_update_count": len(world.queue),
        "allowed_updates": sorted(world.allowed_updates),
        **world.webhook,
    }


# Messages


def send_message(world: World, params: Json) -> Json:
    room = _writable(world, params)
    check_text(params, world.ledger.complain)
    _check_thread(world, room, params)
    reply_to = _reply_to(world, room, params)
    built = {
        "message_id": world.next_message_id(room),
        "from": payloads.bot_user(),
        "chat": room.chat(),
        "date": int(world.wall()),
        **_shown_text(params),
    }
    if reply_to is not None:
        built["reply_to_message"] = world.messages[room.id, reply_to]
    if "message_thread_id" in params:
        built |= {"message_thread_id": params["message_thread_id"], "is_topic_message": True}
    world.messages[room.id, built["message_id"]] = built
    world.drafts.pop(room.id, None)
    world.ledger.timeline.append((room.id, "out"))
    _record(world, "sendMessage", room, built["message_id"], params, reply_to)
    return built


def send_upload(world: World, params: Json, method: str, field: str) -> Json:
    room = _writable(world, params)
    name, content = check_upload(params, field, world.ledger.complain)
    _check_thread(world, room, params)
    if field == "photo" and too_tall(content):
        raise _bad("PHOTO_INVALID_DIMENSIONS")
    if field == "voice" and room.id in world.no_voice:
        raise _bad("VOICE_MESSAGES_FORBIDDEN")
    reply_to = _reply_to(world, room, params)
    message_id = world.next_message_id(room)
    sent = {"file_id": f"BQAC{message_id}", "file_unique_id": f"AQ{message_id}", "file_size": len(content)}
    shown: Json = {"photo": [sent]} if field == "photo" else {"document": sent | {"file_name": name}}
    built = {
        "message_id": message_id,
        "from": payloads.bot_user(),
        "chat": room.chat(),
        "date": int(world.wall()),
        **shown,
        **({"caption": params["caption"]} if params.get("caption") else {}),
    }
    world.messages[room.id, message_id] = built
    world.uploads.append((name, content))
    world.ledger.timeline.append((room.id, "out"))
    _record(world, method, room, message_id, params | {"text": params.get("caption", "")}, reply_to)
    return built


def edit_message_text(world: World, params: Json) -> Json:
    room = _writable(world, params)
    old = _message(world, room, params, "message to edit not found")
    if old.get("from", {}).get("id") != payloads.BOT_ID:
        raise _bad("message can't be edited")
    check_text(params, world.ledger.complain)
    kept = {name: old[name] for name in old.keys() - {"text", "entities", "reply_markup", "edit_date"}}
    built = kept | _shown_text(params)
    if built == {name: old[name] for name in old if name != "edit_date"}:
        raise _bad(NOT_MODIFIED)
    built["edit_date"] = int(world.wall())
    world.messages[room.id, built["message_id"]] = built
    world.ledger.timeline.append((room.id, "out"))
    _record(world, "editMessageText", room, built["message_id"], params)
    return built


def delete_message(world: World, params: Json) -> bool:
    room = _writable(world, params)
    old = _message(world, room, params, "message to delete not found")
    if room.type != "private" and old.get("from", {}).get("id") != payloads.BOT_ID:
        raise _bad("message can't be deleted")
    del world.messages[room.id, old["message_id"]]
    _record(world, "deleteMessage", room, old["message_id"], params)
    return True


def set_message_reaction(world: World, params: Json) -> bool:
    room = _writable(world, params)
    target = _message(world, room, params, "message to react not found")
    reactions = params.get("reaction", [])
    if len(reactions) > 1:
        raise _bad("REACTIONS_TOO_MANY", Rule.BAD_VALUE)
    for reaction in reactions:
        if reaction.get("type") != "emoji" or reaction.get("emoji") not in REACTIONS:
            raise _bad("REACTION_INVALID", Rule.BAD_VALUE)
    _record(world, "setMessageReaction", room, target["message_id"], params)
    return True


def send_chat_action(world: World, params: Json) -> bool:
    room = _writable(world, params)
    if params.get("action") not in ACTIONS:
        raise _bad("wrong parameter action in request", Rule.BAD_VALUE)
    _check_thread(world, room, params)
    world.ledger.timeline.append((room.id, "typing"))
    return True


def _shown_text(params: Json) -> Json:
    """The text as the chat shows it: white space at both ends is cut, entities move along, targets are whole."""
    text: str = params["text"]
    cut = len(text) - len(text.lstrip())
    size = len(text.strip().encode("utf-16-le")) // 2
    entities = []
    for entity in params.get("entities", []):
        start = max(entity["offset"] - cut, 0)
        end = min(entity["offset"] + entity["length"] - cut, size)
        if entity["type"] == "text_link":
            entity = entity | {"url": links.checked(links.cleaned(entity["url"]))}
        if end > start:
            entities.append(entity | {"offset": start, "length": end - start})
    shown: Json = {"text": text.strip(), **({"entities": entities} if entities else {})}
    kept = ("link_preview_options", "reply_markup")
    return shown | {name: params[name] for name in kept if params.get(name)}


def _record(world: World, method: str, room: Room, message_id: int, params: Json, reply_to: int | None = None) -> None:
    world.ledger.sent.append(
        Sent(
            method=method,
            chat_id=room.id,
            message_id=message_id,
            text=params.get("text", ""),
            entities=params.get("entities", []),
            thread_id=params.get("message_thread_id"),
            reply_to=reply_to,
            at=world.clock(),
            params=params,
        )
    )


def _room(world: World, params: Json) -> Room:
    """The chat of a call; an upgraded group answers with its new id."""
    wanted = params.get("chat_id")
    if wanted is None:
        raise _bad("chat_id is empty", Rule.BAD_VALUE)
    if wanted in world.upgraded:
        raise Refusal(
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            parameters={"migrate_to_chat_id": world.upgraded[wanted]},
        )
    for room in world.rooms.values():
        if wanted == room.id or (room.type != "private" and room.username and wanted == f"@{room.username}"):
            return room
    raise _bad("chat not found")


def _writable(world: World, params: Json) -> Room:
    room = _room(world, params)
    if room.id in world.closed_chats:
        raise Refusal(403, f"Forbidden: {world.closed_chats[room.id]}")
    return room


def _check_thread(world: World, room: Room, params: Json) -> None:
    if "message_thread_id" not in params:
        return
    if params["message_thread_id"] not in room.topics:
        raise _bad("message thread not found")
    if (room.id, params["message_thread_id"]) in world.closed_topics:
        raise _bad("TOPIC_CLOSED")


def _reply_to(world: World, room: Room, params: Json) -> int | None:
    reply = params.get("reply_parameters")
    if reply is None:
        return None
    if "message_id" not in reply:
        raise _bad("can't parse reply parameters: can't find field \"message_id\"", Rule.BAD_VALUE)
    wanted: int = reply["message_id"]
    if (room.id, wanted) in world.messages:
        return wanted
    if reply.get("allow_sending_without_reply") and "message_thread_id" not in params:  # always false in a topic
        return None
    raise _bad("message to be replied not found")


def _message(world: World, room: Room, params: Json, otherwise: str) -> Json:
    if "message_id" not in params:
        raise _bad("message identifier is not specified", Rule.BAD_VALUE)
    found = world.messages.get((room.id, params["message_id"]))
    if found is None:
        raise _bad(otherwise)
    return found


# The rest


def answer_callback_query(world: World, params: Json) -> bool:
    query_id = params.get("callback_query_id", "")
    if len(params.get("text", "")) > 200:
        raise _bad("MESSAGE_TOO_LONG", Rule.BAD_VALUE)
    if query_id not in world.clicks:
        raise _bad("query is too old and response timeout expired or query ID is invalid")
    world.clicks[query_id] = True
    return True


def set_my_commands(world: World, params: Json) -> bool:
    commands = params.get("commands", [])
    if len(commands) > 100:
        raise _bad("BOT_COMMANDS_TOO_MUCH", Rule.BAD_VALUE)
    for command in commands:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", command.get("command", "")):
            raise _bad("BOT_COMMAND_INVALID", Rule.BAD_VALUE)
        if not 1 <= len(command.get("description", "")) <= 256:
            raise _bad("BOT_COMMAND_DESCRIPTION_INVALID", Rule.BAD_VALUE)
    world.commands[_audience(params)] = commands
    return True


def _audience(params: Json) -> str:
    scope = params.get("scope", {"type": "default"})
    return f"{sorted(scope.items())} {params.get('language_code', '')}"


def get_file(world: World, params: Json) -> Json:
    file_id = params.get("file_id", "")
    if file_id not in world.files:
        raise _bad("wrong file_id or the file is temporarily unavailable")
    path, data = world.files[file_id]
    if len(data) > MAX_DOWNLOAD:
        raise _bad("file is too big")
    return {
        "file_id": file_id,
        "file_unique_id": f"AQAD{file_id[-8:]}",
        "file_size": len(data),
        "file_path": path,
    }


def get_chat(world: World, params: Json) -> Json:
    """The "ChatFullInfo" object."""
    gifts = dict.fromkeys(
        (
            "unlimited_gifts",
            "limited_gifts",
            "unique_gifts",
            "premium_subscription",
            "gifts_from_channels",
        ),
        False,
    )
    return {
        **_writable(world, params).chat(),
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": gifts,
    }


METHODS: dict[str, Callable[[World, Json], object]] = {
    "getMe": lambda world, _: world.bot,
    "logOut": lambda _world, _: True,
    "close": lambda _world, _: True,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
    "sendMessage": send_message,
    "sendDocument": lambda world, params: send_upload(world, params, "sendDocument", "document"),
    "sendPhoto": lambda world, params: send_upload(world, params, "sendPhoto", "photo"),
    "sendVoice": lambda world, params: send_upload(world, params, "sendVoice", "voice"),
    "editMessageText": edit_message_text,
    "deleteMessage": delete_message,
    "sendChatAction": send_chat_action,
    "setMyCommands": set_my_commands,
    "answerCallbackQuery": answer_callback_query,
    "setMessageReaction": set_message_reaction,
    "getFile": get_file,
    "getChat": get_chat,
}
