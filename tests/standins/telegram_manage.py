"""Drafts, pins and topics of the Telegram stand-in: `sendMessageDraft`, `pinChatMessage`, `createForumTopic` and so on.

A draft is shown in a private chat until a message of the bot comes, for 30 seconds at the most, and has no id of a
message. In groups the bot has the rights that `World.rights` names by chat.
"""

from dataclasses import replace

from tests.standins.telegram_ledger import Json, Refusal, Rule
from tests.standins.telegram_methods import _check_thread, _message, _writable
from tests.standins.telegram_text import check_text
from tests.standins.telegram_updates import Room
from tests.standins.telegram_world import World

_MAX_NAME = 128


def send_message_draft(world: World, params: Json) -> bool:
    room = _writable(world, params)
    if room.type != "private":
        raise _bad("TEXTDRAFT_PEER_INVALID", Rule.BAD_VALUE)
    if not params.get("draft_id"):
        raise _bad("RANDOM_ID_INVALID", Rule.BAD_VALUE)
    if params.get("text"):
        check_text(params, world.ledger.complain)
    _check_thread(world, room, params)
    world.drafts[room.id] = params
    return True


def pin_chat_message(world: World, params: Json) -> bool:
    room = _allowed(world, params, "can_pin_messages", "manage pinned messages in the chat")
    message_id = _message(world, room, params, "message to pin not found")["message_id"]
    world.pinned.setdefault(room.id, []).append(message_id)
    if room.type != "private" and not params.get("disable_notification"):
        world.ledger.complain(Rule.BAD_VALUE, "a pin that calls every member")
    return True


def unpin_chat_message(world: World, params: Json) -> bool:
    room = _allowed(world, params, "can_pin_messages", "manage pinned messages in the chat")
    pinned = world.pinned.get(room.id, [])
    if "message_id" not in params:  # the newest
        del pinned[-1:]
        return True
    message_id = _message(world, room, params, "message to unpin not found")["message_id"]
    world.pinned[room.id] = [one for one in pinned if one != message_id]
    return True


def create_forum_topic(world: World, params: Json) -> Json:
    room = _forum(world, params, "create a topic")
    name = _name(params)
    thread = world.next_message_id(room)  # of the message that opens it
    world.rooms[room.id] = replace(room, topics=room.topics | {thread})
    world.topic_names[room.id, thread] = name
    return {"message_thread_id": thread, "name": name, "icon_color": params.get("icon_color", 7_322_096)}


def edit_forum_topic(world: World, params: Json) -> bool:
    room = _forum(world, params, "edit the topic")
    thread = params.get("message_thread_id")
    if thread not in room.topics:
        raise _bad("TOPIC_ID_INVALID")
    if world.topic_names.get((room.id, thread)) == params.get("name"):
        raise _bad("TOPIC_NOT_MODIFIED")
    world.topic_names[room.id, thread] = _name(params)
    return True


def _forum(world: World, params: Json, what: str) -> Room:
    if not _writable(world, params).topics:
        raise _bad("the chat is not a forum")
    return _allowed(world, params, "can_manage_topics", what)


def _allowed(world: World, params: Json, right: str, what: str) -> Room:
    room = _writable(world, params)
    if room.type != "private" and right not in world.rights.get(room.id, ()):
        raise _bad(f"not enough rights to {what}")
    return room


def _name(params: Json) -> str:
    name: str = params.get("name", "")
    if not 1 <= len(name) <= _MAX_NAME:
        raise _bad("TOPIC_TITLE_EMPTY" if not name else "topic name is too long", Rule.BAD_VALUE)
    return name


def _bad(what: str, rule: Rule | None = None) -> Refusal:
    return Refusal(400, f"Bad Request: {what}", rule=rule)


METHODS = {
    "sendMessageDraft": send_message_draft,
    "pinChatMessage": pin_chat_message,
    "unpinChatMessage": unpin_chat_message,
    "createForumTopic": create_forum_topic,
    "editForumTopic": edit_forum_topic,
}
