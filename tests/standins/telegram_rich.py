"""Rich messages of the Bot API, from 10.1 on: `sendRichMessage`, and `rich_message` of `editMessageText`.

Rules of "InputRichMessage" and "Rich Message Limits": one of `html` and `markdown`, 32,768 characters, 20 columns.
"""

import re

from tests.standins import telegram_updates as payloads
from tests.standins.telegram_ledger import Json, Refusal, Rule
from tests.standins.telegram_methods import _check_thread, _record, _reply_to, _writable, edit_message_text
from tests.standins.telegram_world import World

MAX_CHARS = 32_768
MAX_COLUMNS = 20
_PICTURE = re.compile(r"!\[|<(?:img|video|audio)\b", re.IGNORECASE)


def send_rich_message(world: World, params: Json) -> Json:
    """As sendMessage; what it says is kept as the text of the message."""
    room = _writable(world, params)
    text = _checked(world, params.get("rich_message"))
    _check_thread(world, room, params)
    reply_to = _reply_to(world, room, params)
    built = {
        "message_id": world.next_message_id(room),
        "from": payloads.bot_user(),
        "chat": room.chat(),
        "date": int(world.wall()),
        "rich_message": {"blocks": [{"type": "paragraph", "text": text}]},
    }
    world.messages[room.id, built["message_id"]] = built
    world.ledger.timeline.append((room.id, "out"))
    _record(world, "sendRichMessage", room, built["message_id"], {**params, "text": text}, reply_to)
    return built


def edit_rich_message(world: World, params: Json) -> Json:
    """As editMessageText; only what it says may be rich."""
    if "rich_message" not in params:
        return edit_message_text(world, params)
    text = _checked(world, params["rich_message"])
    if params.get("text"):
        raise _bad("message text and rich_message can't be used together")
    built = edit_message_text(world, params | {"text": text})
    del built["text"]
    return built | {"rich_message": {"blocks": [{"type": "paragraph", "text": text}]}}


def _checked(world: World, rich: Json | None) -> str:
    given = [rich[name] for name in ("html", "markdown") if rich and rich.get(name)]
    if len(given) != 1:
        raise _bad("exactly one of html and markdown must be used in rich_message")
    (text,) = given
    if len(text) > MAX_CHARS:
        raise _bad("rich message is too long")
    if any(len(line.strip().strip("|").split("|")) > MAX_COLUMNS for line in text.splitlines() if line.startswith("|")):
        raise _bad("too many columns in a table")
    if _PICTURE.search(text):
        # Accepted, but Telegram fetches it: an address that a model was made to write.
        world.ledger.complain(Rule.FORMATTING, "a rich message loads media by address")
    return str(text)


def _bad(what: str) -> Refusal:
    return Refusal(400, f"Bad Request: {what}", rule=Rule.FORMATTING)


METHODS = {"sendRichMessage": send_rich_message, "editMessageText": edit_rich_message}
