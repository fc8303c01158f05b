"""One row per rule of the Bot API that the Telegram stand-in keeps, with the documentation's heading.

Each row holds a call that breaks the rule and its accepted counterpart; test_telegram_rules makes both.
"""

from dataclasses import dataclass
from typing import Any

from tests.standins.telegram_ledger import Json, Rule
from tests.standins.telegram_updates import ALICE, Person, Room

FORUM = Room(-1_001_222_333_444, "supergroup", "Workshop", topics=frozenset({6, 7}))
QUIET = Room(-4_000_444, "group", "Where the bot may nothing")
BLOCKER = Person(712_345_678, "Carol")
HERS, MINE = 41, 42  # message ids: Alice's first message, the bot's first message
CLICK, FILE = "2153000000000000", "BQACAgIAAxkBAAI00000000"
EMOJI = "😀"  # two UTF-16 code units


@dataclass(frozen=True, slots=True)
class Row:
    """One rule. `broken` must be answered with `code` and be a violation of `rule`, `kept` be accepted.

    200 stands for calls that the platform accepts, without doing what was meant.
    """

    heading: str
    name: str
    method: str
    broken: Json
    code: int
    says: str
    rule: Rule | None
    kept: Json


def mark(kind: str, offset: int, length: int, **more: Any) -> Json:
    return {"type": kind, "offset": offset, "length": length, **more}


def text(value: str, *entities: Json, **more: Any) -> Json:
    return {"chat_id": ALICE.id, "text": value, **({"entities": list(entities)} if entities else {}), **more}


def send(name: str, broken: Json, says: str, kept: Json, *, heading: str = "sendMessage") -> Row:
    """A text that is refused for its formatting."""
    return Row(heading, name, "sendMessage", broken, 400, f"Bad Request: {says}", Rule.FORMATTING, kept)


def entity(name: str, broken: Json, says: str, kept: Json) -> Row:
    """A text that is refused for one of its entities."""
    return send(name, broken, says, kept, heading="MessageEntity")


def lost(name: str, broken: Json, kept: Json, *, heading: str = "Formatting options") -> Row:
    """A text that is accepted, but shown with other formatting than was sent."""
    return Row(heading, name, "sendMessage", broken, 200, "", Rule.FORMATTING, kept)


def wrong(heading: str, name: str, method: str, broken: Json, says: str, kept: Json) -> Row:
    """A value that the documentation excludes."""
    return Row(heading, name, method, broken, 400, f"Bad Request: {says}", Rule.BAD_VALUE, kept)


def told(heading: str, name: str, method: str, broken: Json, code: int, says: str, kept: Json) -> Row:
    """A refusal that a client cannot foresee, so that it is no violation."""
    return Row(heading, name, method, broken, code, says, None, kept)


COMMAND = {"command": "help", "description": "What I can do"}
KEYBOARD = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y" * 64}]]}
LONG_KEYBOARD = {"inline_keyboard": [[{"text": "Yes", "callback_data": "é" * 33}]]}

METHOD_ROWS = [
    # chats, threads, replies
    told("sendMessage", "the chat is known", "sendMessage", {"chat_id": 999_999, "text": "x"}, 400,
        "Bad Request: chat not found", text("x")),
    wrong("sendMessage", "chat_id is required", "sendMessage", {"text": "x"}, "chat_id is empty", text("x")),
    told("Bot FAQ", "the person has not blocked the bot", "sendMessage", {"chat_id": BLOCKER.id, "text": "x"}, 403,
        "Forbidden: bot was blocked by the user", text("x")),
    told("sendMessage", "the thread exists", "sendMessage", {"chat_id": FORUM.id, "text": "x", "message_thread_id": 8},
        400, "Bad Request: message thread not found", {"chat_id": FORUM.id, "text": "x", "message_thread_id": 7}),
    told("sendMessage", "the topic is open", "sendMessage", {"chat_id": FORUM.id, "text": "x", "message_thread_id": 6},
        400, "Bad Request: TOPIC_CLOSED", {"chat_id": FORUM.id, "text": "x", "message_thread_id": 7}),
    told("ReplyParameters", "in a topic the message exists", "sendMessage", {"chat_id": FORUM.id, "text": "x",
        "message_thread_id": 7, "reply_parameters": {"message_id": 9_999, "allow_sending_without_reply": True}}, 400,
        "Bad Request: message to be replied not found", {"chat_id": FORUM.id, "text": "x", "message_thread_id": 7}),
    told("ReplyParameters", "the message replied to exists", "sendMessage", text("x",
        reply_parameters={"message_id": 9_999}), 400, "Bad Request: message to be replied not found", text("x",
        reply_parameters={"message_id": 9_999, "allow_sending_without_reply": True})),
    wrong("ReplyParameters", "message_id is required", "sendMessage", text("x",
        reply_parameters={"allow_sending_without_reply": True}), "can't parse reply parameters", text("x",
        reply_parameters={"message_id": HERS})),
    wrong("LinkPreviewOptions", "it is an object", "sendMessage", text("x", link_preview_options=True),
        'field "sendMessage.link_preview_options" must be of type Object', text("x",
        link_preview_options={"is_disabled": True})),
    wrong("InlineKeyboardButton", "callback_data has 1-64 bytes", "sendMessage", text("x", reply_markup=LONG_KEYBOARD),
        "BUTTON_DATA_INVALID", text("x", reply_markup=KEYBOARD)),
    Row("sendMessage", "no unknown parameter", "sendMessage", text("x", reply_to_message_id=HERS), 200, "",
        Rule.UNKNOWN_FIELD, text("x")),
    Row("MessageEntity", "no unknown field inside", "sendMessage", text("x", mark("bold", 0, 1, colour="red")), 200,
        "", Rule.UNKNOWN_FIELD, text("x", mark("bold", 0, 1))),
    # editing, deleting, reacting
    told("editMessageText", "the message exists", "editMessageText", text("y", message_id=9_999), 400,
        "Bad Request: message to edit not found", text("y", message_id=MINE)),
    told("editMessageText", "only the bot's own messages", "editMessageText", text("y", message_id=HERS), 400,
        "Bad Request: message can't be edited", text("y", message_id=MINE)),
    told("editMessageText", "an edit changes something", "editMessageText", text("from the bot", message_id=MINE), 400,
        "Bad Request: message is not modified", text("from the bot!", message_id=MINE)),
    Row("editMessageText", "4096 characters", "editMessageText", text("x" * 4097, message_id=MINE), 400,
        "Bad Request: message is too long", Rule.FORMATTING, text("x" * 4096, message_id=MINE)),
    told("deleteMessage", "the message exists", "deleteMessage", {"chat_id": ALICE.id, "message_id": 9_999}, 400,
        "Bad Request: message to delete not found", {"chat_id": ALICE.id, "message_id": MINE}),
    wrong("setMessageReaction", "the emoji is one of the list", "setMessageReaction", {"chat_id": ALICE.id,
        "message_id": HERS, "reaction": [{"type": "emoji", "emoji": "🦖"}]}, "REACTION_INVALID", {"chat_id": ALICE.id,
        "message_id": HERS, "reaction": [{"type": "emoji", "emoji": "👀"}]}),
    wrong("setMessageReaction", "one reaction per message", "setMessageReaction", {"chat_id": ALICE.id,
        "message_id": HERS, "reaction": [{"type": "emoji", "emoji": "👀"}, {"type": "emoji", "emoji": "👍"}]},
        "REACTIONS_TOO_MANY", {"chat_id": ALICE.id, "message_id": HERS, "reaction": []}),
    # the rest
    wrong("sendChatAction", "the action is one of the list", "sendChatAction", {"chat_id": ALICE.id,
        "action": "thinking"}, "wrong parameter action in request", {"chat_id": ALICE.id, "action": "typing"}),
    wrong("BotCommand", "lower case letters, digits, underscores", "setMyCommands", {"commands": [{"command": "Help",
        "description": "x"}]}, "BOT_COMMAND_INVALID", {"commands": [COMMAND]}),
    wrong("BotCommand", "a description of 1-256 characters", "setMyCommands", {"commands": [{"command": "help",
        "description": ""}]}, "BOT_COMMAND_DESCRIPTION_INVALID", {"commands": [COMMAND]}),
    wrong("setMyCommands", "at most 100 commands", "setMyCommands", {"commands": [{"command": f"c{n}",
        "description": "x"} for n in range(101)]}, "BOT_COMMANDS_TOO_MUCH", {"commands": [{"command": f"c{n}",
        "description": "x"} for n in range(100)]}),
    told("answerCallbackQuery", "the query is known", "answerCallbackQuery", {"callback_query_id": "1"}, 400,
        "Bad Request: query is too old and response timeout expired or query ID is invalid",
        {"callback_query_id": CLICK}),
    told("getFile", "the file is known", "getFile", {"file_id": "nothing"}, 400, "Bad Request: wrong file_id",
        {"file_id": FILE}),
    told("getChat", "the chat is known", "getChat", {"chat_id": 999_999}, 400, "Bad Request: chat not found",
        {"chat_id": ALICE.id}),
    # drafts, pins, topics
    wrong("sendMessageDraft", "only in private chats", "sendMessageDraft", {"chat_id": FORUM.id, "draft_id": 1,
        "text": "x"}, "TEXTDRAFT_PEER_INVALID", text("x", draft_id=1)),
    wrong("sendMessageDraft", "draft_id is not zero", "sendMessageDraft", text("x", draft_id=0), "RANDOM_ID_INVALID",
        text("", draft_id=-1)),
    Row("sendMessageDraft", "4096 characters", "sendMessageDraft", text("x" * 4097, draft_id=1), 400,
        "Bad Request: message is too long", Rule.FORMATTING, text("x" * 4096, draft_id=1)),
    Row("sendMessageDraft", "nothing about link previews", "sendMessageDraft", text("x", draft_id=1,
        link_preview_options={"is_disabled": True}), 200, "", Rule.UNKNOWN_FIELD, text("x", draft_id=1)),
    told("pinChatMessage", "the message exists", "pinChatMessage", {"chat_id": ALICE.id, "message_id": 9_999}, 400,
        "Bad Request: message to pin not found", {"chat_id": ALICE.id, "message_id": MINE}),
    told("pinChatMessage", "the right to pin", "pinChatMessage", {"chat_id": QUIET.id, "message_id": 1}, 400,
        "Bad Request: not enough rights to manage pinned messages in the chat", {"chat_id": ALICE.id,
        "message_id": HERS}),
    told("unpinChatMessage", "the message exists", "unpinChatMessage", {"chat_id": ALICE.id, "message_id": 9_999}, 400,
        "Bad Request: message to unpin not found", {"chat_id": ALICE.id}),
    told("createForumTopic", "the chat is a forum", "createForumTopic", {"chat_id": QUIET.id, "name": "Plans"}, 400,
        "Bad Request: the chat is not a forum", {"chat_id": FORUM.id, "name": "Plans"}),
    wrong("createForumTopic", "a name of 1-128 characters", "createForumTopic", {"chat_id": FORUM.id,
        "name": "x" * 129}, "topic name is too long", {"chat_id": FORUM.id, "name": "x" * 128}),
    told("editForumTopic", "the topic exists", "editForumTopic", {"chat_id": FORUM.id, "message_thread_id": 8,
        "name": "Plans"}, 400, "Bad Request: TOPIC_ID_INVALID", {"chat_id": FORUM.id, "message_thread_id": 7,
        "name": "Plans"}),
    Row("editMessageText", "a rich message within its limits", "editMessageText", {"chat_id": ALICE.id,
        "message_id": MINE, "rich_message": {"markdown": "|a" * 21 + "|"}}, 400,
        "Bad Request: too many columns in a table", Rule.FORMATTING, {"chat_id": ALICE.id, "message_id": MINE,
        "rich_message": {"markdown": "|a" * 20 + "|"}}),
    wrong("setWebhook", "an HTTPS address", "setWebhook", {"url": "http://example.org/hook"}, "bad webhook",
        {"url": "https://example.org/hook"}),
    wrong("setWebhook", "secret_token of A-Z, a-z, 0-9, _ and -", "setWebhook", {"url": "https://example.org/hook",
        "secret_token": "ä"}, "secret token contains unallowed characters", {"url": "https://example.org/hook",
        "secret_token": "a_B-9"}),
    Row("getUpdates", "limit is 1-100", "getUpdates", {"limit": 101}, 200, "", Rule.BAD_VALUE, {"limit": 100}),
    Row("getUpdates", "timeout is not negative", "getUpdates", {"timeout": -1}, 200, "", Rule.BAD_VALUE,
        {"timeout": 0}),
    Row("getUpdates", "allowed_updates are known", "getUpdates", {"allowed_updates": ["gossip"]}, 200, "",
        Rule.BAD_VALUE, {"allowed_updates": ["message"]}),
    Row("getUpdates", "no offset beyond all updates", "getUpdates", {"offset": 900_000_000}, 200, "", Rule.BAD_VALUE,
        {"offset": 0}),
    Row("getUpdates", "no offset from the end", "getUpdates", {"offset": -1}, 200, "", Rule.BAD_VALUE, {"offset": 1}),
    wrong("getUpdates", "offset is an Integer", "getUpdates", {"offset": "soon"},
        'field "getUpdates.offset" must be of type Integer', {"offset": "5"}),
]  # fmt: skip
