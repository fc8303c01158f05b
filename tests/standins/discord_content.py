"""What the Discord stand-in asks of a message beyond the form of its fields: limits, places, permissions, pings."""

from typing import Any

from tests.standins import discord_objects as objects
from tests.standins.discord_components import check_components
from tests.standins.discord_files import File
from tests.standins.discord_ledger import MISSING_PERMISSIONS, Json, Refusal, form
from tests.standins.discord_objects import Permission
from tests.standins.discord_people import Allowed
from tests.standins.discord_world import is_thread

MAX_FILE = 10 * 1024 * 1024
SETTABLE = objects.SUPPRESS_EMBEDS | objects.SUPPRESS_NOTIFICATIONS | objects.VOICE_MESSAGE


def may_speak(server: Any, channel: Json, body: Json) -> None:
    """Whether the bot may write there now."""
    kind = channel["type"]
    if kind == objects.CATEGORY:
        raise Refusal(400, 50008, "Cannot send messages in a non-text channel")
    if kind == objects.FORUM:
        raise Refusal(400, 40058, "Cannot message this channel until you've created a thread")
    if kind == objects.DM:
        person = int(channel["recipients"][0]["id"])
        if person in server.blocked or (not server.shared_guild(person) and not server.stored[channel["id"]]):
            raise Refusal(403, 50007, "Cannot send messages to this user")
        return
    threads = (Permission.SEND_MESSAGES_IN_THREADS,) if is_thread(channel) else (Permission.SEND_MESSAGES,)
    server.demand(channel, *threads)
    locked = is_thread(channel) and channel["thread_metadata"]["locked"]
    if locked and not server.permissions(server.bot, channel) & Permission.MANAGE_THREADS:
        raise Refusal(400, 160005, "Thread is locked")
    if body.get("poll"):
        server.demand(channel, Permission.SEND_POLLS)


def check_message(server: Any, channel: Json, body: Json, files: dict[str, File], *, edit: bool = False) -> None:
    """What the form alone does not say about a message."""
    flags = body.get("flags") or 0
    if flags & objects.COMPONENTS_V2:
        raise Refusal(400, 0, "this stand-in does not know IS_COMPONENTS_V2")
    if not edit and flags & ~(SETTABLE | objects.EPHEMERAL):
        raise form("flags", "MESSAGE_FLAGS_INVALID", f"Only {SETTABLE} can be set")
    check_components(body.get("components") or [])
    _check_embeds(body.get("embeds") or [])
    _check_mentions(body.get("allowed_mentions"))
    _check_files(server, channel, body, files)
    anything = any(body.get(name) for name in ("content", "embeds", "sticker_ids", "components", "poll"))
    blank = not (body.get("content") or "").strip() and not any(
        body.get(name) for name in ("embeds", "sticker_ids", "components", "poll")
    )
    forward = (body.get("message_reference") or {}).get("type") == 1
    if not edit and not files and not forward and (blank or not anything):
        raise Refusal(400, 50006, "Cannot send an empty message")


def _check_embeds(embeds: list[Json]) -> None:
    total = sum(_embed_size(one) for one in embeds)
    if total > 6000:
        raise form("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")


def _embed_size(embed: Json) -> int:
    parts = [embed.get("title"), embed.get("description"), (embed.get("footer") or {}).get("text")]
    parts += [(embed.get("author") or {}).get("name")]
    parts += [one[name] for one in embed.get("fields") or () for name in ("name", "value")]
    return sum(len(one) for one in parts if one)


def _check_mentions(allowed: Json | None) -> None:
    for kind in ("users", "roles"):
        if allowed and allowed.get(kind) and kind in (allowed.get("parse") or ()):
            words = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
            raise form("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", words)


def _check_files(server: Any, channel: Json, body: Json, files: dict[str, File]) -> None:
    if len(files) > 10:
        raise Refusal(400, 30015, "Maximum number of attachments in a message reached (10)")
    if any(len(one.data) > MAX_FILE for one in files.values()):
        raise Refusal(413, 40005, "Request entity too large")
    if files and "guild_id" in channel:
        server.demand(channel, Permission.ATTACH_FILES)
    if (
        body.get("embeds")
        and "guild_id" in channel
        and not server.permissions(server.bot, channel) & Permission.EMBED_LINKS
    ):
        raise Refusal(*MISSING_PERMISSIONS)


def allowed_of(body: Json, default: Allowed) -> Allowed:
    """What `allowed_mentions` of a body says."""
    given = body.get("allowed_mentions")
    if given is None:
        return default
    return Allowed(
        frozenset(given.get("parse") or ()),
        frozenset(str(one) for one in given.get("users") or ()),
        frozenset(str(one) for one in given.get("roles") or ()),
        bool(given.get("replied_user")),
    )
