"""What the reading methods of the Web API answer, conversations.open and the three steps of an upload."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from tests.standins import slack_shapes as shapes
from tests.standins.slack_arguments import parsed
from tests.standins.slack_delivery import Delivering
from tests.standins.slack_ledger import Json, Refusal, Rule
from tests.standins.slack_methods import Content, note, stored_text
from tests.standins.slack_shapes import BOT, Room
from tests.standins.slack_world import ts_of


def auth_test(world: Delivering, _args: Json) -> Json:
    return {
        "url": f"https://{shapes.TEAM_DOMAIN}.slack.com/",
        "team": "Hark Test",
        "user": shapes.HARK.name,
        "team_id": shapes.TEAM,
        "user_id": BOT,
        "bot_id": shapes.BOT_ID,
        "is_enterprise_install": False,
    }


# Pages


def _page(items: list[Any], args: Json, default: int) -> tuple[list[Any], Json]:
    """A page and its response_metadata; the cursor names an offset, as opaque as Slack's."""
    start = 0
    if args.get("cursor"):
        try:
            word, _, number = base64.b64decode(args["cursor"], validate=True).decode().partition(":")
            start = int(number)
        except ValueError:
            word = ""
        if word != "offset":
            raise Refusal("invalid_cursor", rule=Rule.BAD_VALUE)
    limit = args.get("limit") or default
    if not 1 <= limit <= 1000:
        raise Refusal("invalid_limit", rule=Rule.BAD_VALUE)
    more = start + limit < len(items)
    cursor = base64.b64encode(f"offset:{start + limit}".encode()).decode() if more else ""
    return items[start : start + limit], {"next_cursor": cursor}


def _between(args: Json) -> Callable[[Json], bool]:
    inclusive = args.get("inclusive", False)

    def key(name: str, default: str) -> tuple[int, int]:
        value = args.get(name) or default
        seconds, _, micro = value.partition(".")
        try:
            return int(seconds), int(micro[:6].ljust(6, "0") or "0")
        except ValueError:
            raise Refusal(f"invalid_ts_{name}", rule=Rule.BAD_VALUE) from None

    oldest, latest = key("oldest", "0"), key("latest", "99999999999")

    def inside(message: Json) -> bool:
        seconds, _, micro = message["ts"].partition(".")
        at = (int(seconds), int(micro))
        return oldest <= at <= latest if inclusive else oldest < at < latest

    return inside


def _seen(message: Json, args: Json) -> Json:
    left_out = set() if args.get("include_all_metadata") else {"metadata"}
    seen = {name: value for name, value in message.items() if name not in left_out | {"root"}}
    if "root" in message:
        seen["root"] = dict(message["root"])
    return seen


def _readable(world: Delivering, args: Json) -> Room:
    room = world.room(args["channel"])
    world.need(f"{shapes.SCOPE_PREFIX[room.kind]}:history")
    if BOT not in room.members:
        raise Refusal("not_in_channel")
    return room


def history(world: Delivering, args: Json) -> Json:
    """Newest first, without replies except those that were broadcast.

    With `oldest` alone the pages go forward from there, each still newest first, as clients report.
    """
    room = _readable(world, args)
    inside = _between(args)
    found = [one for one in world.kept[room.id].values() if inside(one) and on_top(one)]
    forward = args.get("oldest") and not args.get("latest")
    found.sort(key=ts_of, reverse=not forward)
    page, meta = _page(found, args, 100)
    page.sort(key=ts_of, reverse=True)
    answer: Json = {"messages": [_seen(one, args) for one in page], "has_more": bool(meta["next_cursor"])}
    return answer | {"pin_count": 0, "channel_actions_ts": None, "channel_actions_count": 0, "response_metadata": meta}


def on_top(message: Json) -> bool:
    """Whether the history has it: no reply, or one that was sent to the channel too."""
    own = message.get("thread_ts", message["ts"]) == message["ts"]
    return own or message.get("subtype") == "thread_broadcast"


def replies(world: Delivering, args: Json) -> Json:
    """Return the parent, on every page, then replies, oldest first."""
    room = _readable(world, args)
    named = world.message(room.id, args["ts"], "thread_not_found")
    parent = world.message(room.id, str(named.get("thread_ts", args["ts"])), "thread_not_found")
    if parent.get("subtype") in ("channel_join", "channel_leave"):
        raise Refusal("thread_not_found")
    inside = _between(args)
    found = [one for one in world.replies(room.id, parent["ts"]) if inside(one)]
    page, meta = _page(found, args, 1000)
    answer = {"messages": [_seen(one, args) for one in [parent, *page]], "has_more": bool(meta["next_cursor"])}
    return answer | {"response_metadata": meta}


# Conversations and people


def info(world: Delivering, args: Json) -> Json:
    room = world.room(args["channel"])
    world.need(f"{shapes.SCOPE_PREFIX[room.kind]}:read")
    return {"channel": room.channel()}


def own_conversations(world: Delivering, args: Json) -> Json:
    types = set((args.get("types") or "public_channel").split(","))
    kinds = {kind for kind, name in shapes.TYPE_NAME.items() if name in types}
    if len(kinds) != len(types):
        raise Refusal("invalid_types", rule=Rule.BAD_VALUE)
    for kind in kinds:
        world.need(f"{shapes.SCOPE_PREFIX[kind]}:read")
    rooms = [
        room
        for room in world.rooms.values()
        if room.kind in kinds and BOT in room.members and not (args.get("exclude_archived") and room.archived)
    ]
    page, meta = _page(rooms, args, 100)
    return {"channels": [room.channel() for room in page], "response_metadata": meta}


def open_conversation(world: Delivering, args: Json) -> Json:
    users = [one.strip() for one in args.get("users", []) if one.strip()]
    if not users:
        raise Refusal("users_list_not_supplied", rule=Rule.BAD_VALUE)
    if len(users) > 8:
        raise Refusal("too_many_users", rule=Rule.BAD_VALUE)
    if any(user not in world.people for user in users):
        raise Refusal("user_not_found")
    if any(world.people[user].deleted for user in users):
        raise Refusal("user_disabled")
    world.need("im:write" if len(users) == 1 else "mpim:write")
    if len(users) == 1:
        room = world.im(users[0])
    else:
        wanted = {*users, BOT}
        known = (room for room in world.rooms.values() if room.kind == "mpim" and set(room.members) == wanted)
        room = next(known, None) or world.group_dm(*(world.people[user] for user in users))
    return {"no_op": True, "already_open": True, "channel": {"id": room.id}}


def user_info(world: Delivering, args: Json) -> Json:
    if args["user"] not in world.people:
        raise Refusal("user_not_found")
    return {"user": world.people[args["user"]].user()}


def users(world: Delivering, args: Json) -> Json:
    page, meta = _page([one.user() for one in world.people.values()], args, 1000)
    return {"members": page, "cache_ts": int(world.wall()), "response_metadata": meta}


# Files


def upload_url(world: Delivering, args: Json) -> Json:
    if args["length"] < 1:
        raise Refusal("invalid_arguments", rule=Rule.BAD_VALUE, messages=["[ERROR] length must be at least 1"])
    file = world.new_file(BOT, args["filename"], args["length"])
    file_id = file.body["id"]
    return {"upload_url": f"{world.origin}/upload/v1/{file_id}", "file_id": file_id}


def complete_upload(world: Delivering, args: Json) -> Json:
    """Share what was uploaded, as one message in its conversation."""
    named = parsed(args["files"], list)
    files = [world.files.get(one.get("id", "")) for one in named]
    if not named or any(file is None or file.data is None or file.shared for file in files):
        raise Refusal("file_not_found", rule=Rule.BAD_VALUE)
    room = world.room(args["channel_id"])
    if BOT not in room.members:
        raise Refusal("not_in_channel")
    if args.get("thread_ts"):
        world.message(room.id, args["thread_ts"], "thread_not_found")
    found = [file for file in files if file is not None]
    for file, given in zip(found, named, strict=True):
        file.body["title"] = given.get("title", file.body["title"])
        file.shared = True
    bodies = [file.body for file in found]
    comment = args.get("initial_comment") or ""
    message = shapes.by_bot(stored_text(comment), world.next_ts(room.id), files=bodies, upload=False)
    content = Content(comment, message["text"], [], [], None, args)
    thread_ts = args.get("thread_ts")
    note(world, "files.completeUploadExternal", room, message["ts"], content, thread_ts=thread_ts)
    world.add(room, message | {"subtype": "file_share", "display_as_bot": False}, thread_ts=thread_ts)
    return {"files": [dict(body) for body in bodies]}


def file_info(world: Delivering, args: Json) -> Json:
    file = world.files.get(args["file"])
    if file is None:
        raise Refusal("file_not_found")
    return {"file": dict(file.body), "comments": [], "response_metadata": {"next_cursor": ""}}


READING: Mapping[str, Callable[[Delivering, Json], Json]] = {
    "auth.test": auth_test,
    "conversations.history": history,
    "conversations.info": info,
    "conversations.open": open_conversation,
    "conversations.replies": replies,
    "files.completeUploadExternal": complete_upload,
    "files.getUploadURLExternal": upload_url,
    "files.info": file_info,
    "users.conversations": own_conversations,
    "users.info": user_info,
    "users.list": users,
}
