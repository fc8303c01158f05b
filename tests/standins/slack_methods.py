"""What each writing method of the Web API does to the world: messages, edits, reactions, statuses, streams.

A method takes the server and typed arguments and returns the answer without its "ok", or raises the refusal that
Slack answers. The reading methods and files are in slack_reading; METHODS of slack_arguments says who may call.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tests.standins import slack_blocks as limits
from tests.standins import slack_shapes as shapes
from tests.standins.slack_arguments import parsed
from tests.standins.slack_delivery import Delivering
from tests.standins.slack_ledger import Json, Refusal, Rule, Sent
from tests.standins.slack_shapes import BOT, Room

RESPONSE_SECONDS, RESPONSE_USES = 30 * 60, 5
STREAM_SECONDS = 5 * 60
RESPONSE_FIELDS = {
    *("text", "blocks", "attachments", "metadata", "link_names", "mrkdwn", "parse", "unfurl_links", "unfurl_media"),
    *("response_type", "replace_original", "delete_original", "thread_ts", "reply_broadcast"),
}
# Messages below which nobody can answer.
_UNANSWERABLE = ("channel_join", "channel_leave", "channel_name")
_BARE_URL = re.compile(r"(?<![<|\w/])https?://[^\s<>|]+")


@dataclass(frozen=True, slots=True)
class Content:
    """What a message says: `kept` is the text as Slack keeps it, blocks with their ids."""

    text: str
    kept: str
    blocks: list[Json]
    sent_blocks: list[Json]
    metadata: Json | None
    args: Json

    @property
    def shown(self) -> str:
        return limits.shown(self.text, self.sent_blocks)


def read_content(world: Delivering, args: Json, most: int = limits.MAX_TEXT) -> Content:
    """Check what a message says; raises `no_text` when that is nothing."""
    text, blocks = args.get("text") or "", limits.check_blocks(args.get("blocks") or [])
    for place in limits.unescaped(text, blocks):
        world.ledger.complain(Rule.UNESCAPED, repr(place))
    if "markdown_text" in args:
        if text or blocks:
            raise Refusal("markdown_text_conflict", rule=Rule.FORMATTING)
        limits.check_text(args["markdown_text"], limits.MAX_MARKDOWN)
        text = args["markdown_text"]
    limits.check_text(text, most)
    if not text.strip() and not blocks and not args.get("attachments"):
        raise Refusal("no_text", rule=Rule.FORMATTING)
    metadata = limits.check_metadata(args["metadata"]) if args.get("metadata") else None
    kept = stored_text(text.strip() or limits.shown("", blocks))
    return Content(text, kept, stored_blocks(world, blocks), blocks, metadata, args)


def stored_text(text: str) -> str:
    """A text as it comes back from the history: bare links are wrapped, lone signs are escaped."""
    wrapped = _BARE_URL.sub(lambda match: f"<{match[0]}>", text)
    return limits.CONTROL.sub(lambda match: "&amp;" if match[0] == "&" else "&lt;", wrapped)


def stored_blocks(world: Delivering, blocks: Iterable[Json]) -> list[Json]:
    """Blocks as they come back: each has an id, and a markdown block has become rich text."""
    kept = []
    for block in blocks:
        block_id = block.get("block_id") or f"b{world.number():04d}"
        if block["type"] == "markdown":
            kept.append(shapes.rich_text(block["text"], f"b{world.number():04d}"))
        else:
            kept.append({**block, "block_id": block_id})
    return kept


def note(world: Delivering, method: str, room: Room, ts: str, content: Content, **more: object) -> None:
    """Remember something that a person can see."""
    world.ledger.sent.append(
        Sent(
            method=method,
            channel=room.id,
            ts=ts,
            text=content.text,
            args=content.args,
            at=world.clock(),
            shown=content.shown,
            blocks=content.sent_blocks,
            metadata=content.metadata,
            pings=limits.pings(content.text, content.sent_blocks, content.args),
            fetched=limits.fetched(content.text, content.sent_blocks, content.args),
            **more,  # type: ignore[arg-type]
        )
    )


def writable(world: Delivering, channel: str) -> Room:
    """The conversation, if the app may write there; a person's id is the direct conversation with them."""
    room = world.im(channel) if channel in world.people and channel != BOT else world.room(channel)
    if room.archived:
        raise Refusal("is_archived")
    if BOT not in room.members and "chat:write.public" not in world.scopes:
        raise Refusal("not_in_channel")
    return room


def _check_parent(world: Delivering, room: Room, thread_ts: str) -> None:
    parent = world.message(room.id, thread_ts, "thread_not_found")
    if parent.get("subtype") in _UNANSWERABLE:
        raise Refusal("cannot_reply_to_message")
    if parent.get("thread_ts", thread_ts) != thread_ts:
        world.ledger.complain(Rule.BAD_VALUE, f"thread_ts {thread_ts} is a reply's, not its parent's")


def post_message(world: Delivering, args: Json) -> Json:
    room = writable(world, args["channel"])
    if world.orphans_stand_alone and args.get("thread_ts") not in world.kept[room.id]:
        args = {**args, "thread_ts": None}  # as is reported of a parent that was deleted: the reply is for everybody
    content = read_content(world, args)
    if args.get("thread_ts"):
        _check_parent(world, room, args["thread_ts"])
    return _post(world, room, content, "chat.postMessage")


def _post(world: Delivering, room: Room, content: Content, method: str) -> Json:
    args = content.args
    thread_ts = args.get("thread_ts") or None
    message = shapes.by_bot(content.kept, world.next_ts(room.id), metadata=content.metadata)
    message |= {"blocks": content.blocks} if content.blocks else {}
    message |= {"attachments": parsed(args["attachments"], list)} if args.get("attachments") else {}
    broadcast = bool(thread_ts and args.get("reply_broadcast"))
    note(world, method, room, message["ts"], content, thread_ts=thread_ts)
    kept = world.add(room, message, thread_ts=thread_ts, broadcast=broadcast)
    return {"channel": room.id, "ts": kept["ts"], "message": dict(kept)}


def update(world: Delivering, args: Json) -> Json:
    room = world.room(args["channel"])
    kept = _own(world, room, args["ts"], "cant_update_message")
    if room.archived:
        raise Refusal("is_inactive")
    if world.streams.get((room.id, args["ts"])):
        raise Refusal("streaming_state_conflict")
    empty = args.get("metadata") in ({}, "{}")
    content = read_content(world, {**args, "metadata": None} if empty else args, limits.MAX_UPDATE_TEXT)
    new: Json = {"text": content.kept}
    if "blocks" in args:  # without the argument the old ones stay
        new["blocks"] = content.blocks
    if content.metadata or empty:
        new["metadata"] = content.metadata or {}
    note(world, "chat.update", room, args["ts"], content, thread_ts=kept.get("thread_ts"))
    message = world.change(room, args["ts"], new, mark=BOT)
    return {"channel": room.id, "ts": args["ts"], "text": message["text"], "message": dict(message)}


def _own(world: Delivering, room: Room, ts: str, error: str) -> Json:
    kept = world.message(room.id, ts)
    if kept.get("user") != BOT or kept.get("subtype") == "tombstone":
        raise Refusal(error)
    return kept


def delete(world: Delivering, args: Json) -> Json:
    room = world.room(args["channel"])
    kept = _own(world, room, args["ts"], "cant_delete_message")
    sent = Sent("chat.delete", room.id, args["ts"], "", args, world.clock(), thread_ts=kept.get("thread_ts"))
    world.ledger.sent.append(sent)
    world.remove(room, args["ts"])
    return {"channel": room.id, "ts": args["ts"]}


def post_ephemeral(world: Delivering, args: Json) -> Json:
    room = writable(world, args["channel"])
    if args["user"] not in room.members:
        raise Refusal("user_not_in_channel")
    return {"message_ts": whisper(world, room, args["user"], read_content(world, args), "chat.postEphemeral")}


def whisper(world: Delivering, room: Room, user: str, content: Content, method: str) -> str:
    """A message that only one person sees and that no history has; returns its ts."""
    ts = world.next_ts(room.id)
    kept: Json = {"channel": room.id, "ts": ts, "user": user, "text": content.kept, "blocks": content.blocks}
    kept |= {"thread_ts": content.args["thread_ts"]} if content.args.get("thread_ts") else {}
    world.ephemeral.append(kept)
    note(world, method, room, ts, content, only_to=user, thread_ts=content.args.get("thread_ts"))
    return ts


def add_reaction(world: Delivering, args: Json) -> Json:
    room, name = _reactable(world, args)
    world.add_reaction(room, args["timestamp"], name, BOT)
    world.ledger.sent.append(Sent("reactions.add", room.id, args["timestamp"], name, args, world.clock()))
    return {}


def remove_reaction(world: Delivering, args: Json) -> Json:
    if not args.get("channel") or not args.get("timestamp"):
        raise Refusal("no_item_specified", rule=Rule.BAD_VALUE)
    room, name = _reactable(world, args)
    world.remove_reaction(room, args["timestamp"], name, BOT)
    world.ledger.sent.append(Sent("reactions.remove", room.id, args["timestamp"], name, args, world.clock()))
    return {}


def _reactable(world: Delivering, args: Json) -> tuple[Room, str]:
    room = world.room(args["channel"])
    if not re.fullmatch(r"\d+\.\d+", args["timestamp"]):
        raise Refusal("bad_timestamp", rule=Rule.BAD_VALUE)
    if not re.fullmatch(r"[a-z0-9_+'-]+(::skin-tone-[2-6])?", args["name"]):
        raise Refusal("invalid_name", rule=Rule.BAD_VALUE)
    if room.archived:
        raise Refusal("is_archived")
    if BOT not in room.members:
        raise Refusal("not_in_channel")
    world.message(room.id, args["timestamp"])
    return room, args["name"]


def set_status(world: Delivering, args: Json) -> Json:
    """The line "is thinking …" below a thread; an empty one takes it away, so does the next message there."""
    room = world.room(args["channel_id"])
    world.message(room.id, args["thread_ts"], "invalid_thread_ts")
    lines = parsed(args.get("loading_messages", []), list)
    if len(lines) > 10 or any(not 1 <= len(line) <= 50 for line in lines):
        raise Refusal("invalid_arguments", rule=Rule.BAD_VALUE, messages=["[ERROR] [json-pointer:/loading_messages]"])
    if args["status"]:
        world.statuses[room.id, args["thread_ts"]] = args["status"]
    else:
        world.statuses.pop((room.id, args["thread_ts"]), None)
    return {}


def pin(world: Delivering, args: Json) -> Json:
    kept = _pinnable(world, args)
    if kept.get("subtype") in _UNANSWERABLE:
        raise Refusal("not_pinnable")
    if kept.get("pinned_to"):
        raise Refusal("already_pinned")
    kept["pinned_to"] = [args["channel"]]
    world.ledger.sent.append(Sent("pins.add", args["channel"], kept["ts"], "", args, world.clock()))
    return {}


def unpin(world: Delivering, args: Json) -> Json:
    kept = _pinnable(world, args)
    if not kept.pop("pinned_to", None):
        raise Refusal("no_pin")
    world.ledger.sent.append(Sent("pins.remove", args["channel"], kept["ts"], "", args, world.clock()))
    return {}


def _pinnable(world: Delivering, args: Json) -> Json:
    room = world.room(args["channel"])
    if not args.get("timestamp"):
        raise Refusal("no_item_specified", rule=Rule.BAD_VALUE)
    if not re.fullmatch(r"\d+\.\d+", args["timestamp"]):
        raise Refusal("bad_timestamp", rule=Rule.BAD_VALUE)
    return world.message(room.id, args["timestamp"])


# Streams


def start_stream(world: Delivering, args: Json) -> Json:
    room = writable(world, args["channel"])
    if room.kind != "im":
        for name in ("recipient_user_id", "recipient_team_id"):
            if not args.get(name):
                raise Refusal(f"missing_{name}", rule=Rule.BAD_VALUE)
    _check_parent(world, room, args["thread_ts"])
    text = _streamed(args)
    message = shapes.by_bot(text, world.next_ts(room.id), streaming_state="in_progress")
    world.streams[room.id, message["ts"]] = True
    world.after(STREAM_SECONDS, lambda: world.streams.update({(room.id, message["ts"]): False}))
    world.add(room, message, thread_ts=args["thread_ts"])
    _note_stream(world, "chat.startStream", room, message["ts"], args, text)
    return {"channel": room.id, "ts": message["ts"]}


def append_stream(world: Delivering, args: Json) -> Json:
    room, kept = _streaming(world, args)
    text = _streamed(args)
    if not text:
        raise Refusal("no_text", rule=Rule.FORMATTING)
    kept["text"] += text
    _note_stream(world, "chat.appendStream", room, kept["ts"], args, text)
    return {"channel": room.id, "ts": kept["ts"]}


def stop_stream(world: Delivering, args: Json) -> Json:
    room, kept = _streaming(world, args)
    text = _streamed(args)
    blocks = limits.check_blocks(args.get("blocks") or [])
    new: Json = {"text": kept["text"] + text, "streaming_state": "completed"}
    new |= {"blocks": stored_blocks(world, blocks)} if blocks else {}
    new |= {"metadata": limits.check_metadata(args["metadata"])} if args.get("metadata") else {}
    world.streams[room.id, kept["ts"]] = False
    message = world.change(room, kept["ts"], new)
    _note_stream(world, "chat.stopStream", room, kept["ts"], args, text)
    return {"channel": room.id, "ts": kept["ts"], "message": dict(message)}


def _streaming(world: Delivering, args: Json) -> tuple[Room, Json]:
    room = world.room(args["channel"])
    kept = world.message(room.id, args["ts"])
    if not world.streams.get((room.id, args["ts"])):
        raise Refusal("message_not_in_streaming_state")
    return room, kept


def _streamed(args: Json) -> str:
    chunks = parsed(args.get("chunks") or [], list)
    parts = [args.get("markdown_text") or "", *(one.get("text", "") for one in chunks)]
    for part in parts:
        limits.check_text(part, limits.MAX_MARKDOWN)
    return "".join(parts)


def _note_stream(world: Delivering, method: str, room: Room, ts: str, args: Json, text: str) -> None:
    content = Content(text, text, [], [], None, {**args, "unfurl_media": False})
    note(world, method, room, ts, content, thread_ts=world.kept[room.id][ts].get("thread_ts"))


# Answers to commands and clicks


def respond(world: Delivering, key: str, body: Json) -> None:
    """A POST to a response_url; raises what the hook answers to a url that is used up."""
    known = world.response_urls.get(key)
    if known is None:
        raise Refusal("no_service", status=404)
    if world.clock() - known["at"] > RESPONSE_SECONDS:
        raise Refusal("expired_url", status=404, rule=Rule.RESPONSE_URL)
    if known["uses"] >= RESPONSE_USES:
        raise Refusal("used_url", status=404, rule=Rule.RESPONSE_URL)
    answer(world, known, body, "response_url")
    known["uses"] += 1


def answer(world: Delivering, known: Json, body: Json, method: str) -> None:
    """Say, replace or delete what a command or a click answers."""
    room: Room = known["room"]
    original = known["original"]
    whispered = next((one for one in world.ephemeral if (one["channel"], one["ts"]) == (room.id, original)), None)
    if body.get("delete_original"):
        if original is None:
            raise Refusal("invalid_payload", status=400, rule=Rule.BAD_VALUE)
        if whispered is not None:
            world.ephemeral.remove(whispered)
        else:
            world.remove(room, original)
        return
    for name in set(body) - RESPONSE_FIELDS:
        world.ledger.complain(Rule.UNKNOWN_ARGUMENT, f"{method}: {name}")
    content = read_content(world, body)
    if body.get("replace_original") and original is not None:
        new = {"text": content.kept, "blocks": content.blocks}
        note(world, method, room, original, content, only_to=known["user"] if whispered else None)
        if whispered is not None:
            whispered.update(new)
        else:
            world.change(room, original, new, mark=BOT)
    elif body.get("response_type", "ephemeral") == "in_channel":
        _post(world, room, content, method)
    else:
        whisper(world, room, known["user"], content, method)


WRITING: Mapping[str, Callable[[Delivering, Json], Json]] = {
    "assistant.threads.setStatus": set_status,
    "chat.appendStream": append_stream,
    "chat.delete": delete,
    "chat.postEphemeral": post_ephemeral,
    "chat.postMessage": post_message,
    "chat.startStream": start_stream,
    "chat.stopStream": stop_stream,
    "chat.update": update,
    "pins.add": pin,
    "pins.remove": unpin,
    "reactions.add": add_reaction,
    "reactions.remove": remove_reaction,
}
