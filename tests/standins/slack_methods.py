"""What each writing method of the Web API does to the world: messages, edits, reactions, statuses, pins.

A method takes the server and typed arguments and returns the answer without its "ok", or raises the refusal that
Slack answers. The reading methods and files are in slack_reading; METHODS of slack_arguments says who may call.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.standins import slack_blocks as limits
from tests.standins import slack_shapes as shapes
from tests.standins.slack_delivery import Delivering
from tests.standins.slack_ledger import Json, Refusal, Rule, Sent
from tests.standins.slack_shapes import BOT, Room

RESPONSE_SECONDS, RESPONSE_USES = 30 * 60, 5
RESPONSE_FIELDS = {
    *("text", "blocks", "metadata", "unfurl_links", "unfurl_media"),
    *("response_type", "replace_original", "thread_ts"),
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
    for place in limits.unescaped(text):
        world.ledger.complain(Rule.UNESCAPED, repr(place))
    limits.check_text(text, most)
    if not text.strip() and not blocks:
        raise Refusal("no_text", rule=Rule.FORMATTING)
    metadata = limits.check_metadata(args["metadata"]) if args.get("metadata") else None
    kept = stored_text(text.strip() or limits.shown("", blocks))
    kept_blocks = [{**block, "block_id": block.get("block_id") or f"b{world.number():04d}"} for block in blocks]
    return Content(text, kept, kept_blocks, blocks, metadata, args)


def stored_text(text: str) -> str:
    """A text as it comes back from the history: bare links are wrapped, lone signs are escaped."""
    wrapped = _BARE_URL.sub(lambda match: f"<{match[0]}>", text)
    return limits.CONTROL.sub(lambda match: "&amp;" if match[0] == "&" else "&lt;", wrapped)


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
            pings=limits.pings(content.text, content.sent_blocks),
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
    content = read_content(world, args)
    if args.get("thread_ts"):
        _check_parent(world, room, args["thread_ts"])
    return _post(world, room, content, "chat.postMessage")


def _post(world: Delivering, room: Room, content: Content, method: str) -> Json:
    args = content.args
    thread_ts = args.get("thread_ts") or None
    message = shapes.by_bot(content.kept, world.next_ts(room.id), metadata=content.metadata)
    message |= {"blocks": content.blocks} if content.blocks else {}
    note(world, method, room, message["ts"], content, thread_ts=thread_ts)
    kept = world.add(room, message, thread_ts=thread_ts)
    return {"channel": room.id, "ts": kept["ts"], "message": dict(kept)}


def update(world: Delivering, args: Json) -> Json:
    room = world.room(args["channel"])
    kept = _own(world, room, args["ts"], "cant_update_message")
    if room.archived:
        raise Refusal("is_inactive")
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
    """Say or replace what a command or a click answers."""
    room: Room = known["room"]
    original = known["original"]
    whispered = next((one for one in world.ephemeral if (one["channel"], one["ts"]) == (room.id, original)), None)
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
    "chat.delete": delete,
    "chat.postMessage": post_message,
    "chat.update": update,
    "pins.add": pin,
    "pins.remove": unpin,
    "reactions.add": add_reaction,
    "reactions.remove": remove_reaction,
}
