"""What the Discord stand-in asks of a message beyond the form of its fields: limits, places, permissions, pings."""

from typing import Any

from tests.standins import discord_objects as objects
from tests.standins.discord_components import check_components
from tests.standins.discord_files import File
from tests.standins.discord_ledger import Json, Refusal, form
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


def check_message(server: Any, channel: Json, body: Json, files: dict[str, File], *, edit: bool = False) -> None:
    """What the form alone does not say about a message."""
    flags = body.get("flags") or 0
    if not edit and flags & ~SETTABLE:
        raise form("flags", "MESSAGE_FLAGS_INVALID", f"Only {SETTABLE} can be set")
    check_components(body.get("components") or [])
    _check_files(server, channel, files)
    if not edit and not files and not body.get("components") and not (body.get("content") or "").strip():
        raise Refusal(400, 50006, "Cannot send an empty message")


def _check_files(server: Any, channel: Json, files: dict[str, File]) -> None:
    if len(files) > 10:
        raise Refusal(400, 30015, "Maximum number of attachments in a message reached (10)")
    if any(len(one.data) > MAX_FILE for one in files.values()):
        raise Refusal(413, 40005, "Request entity too large")
    if files and "guild_id" in channel:
        server.demand(channel, Permission.ATTACH_FILES)


def allowed_of(body: Json, default: Allowed) -> Allowed:
    """What `allowed_mentions` of a body says."""
    given = body.get("allowed_mentions")
    if given is None:
        return default
    return Allowed(frozenset(given.get("parse") or ()), replied_user=bool(given.get("replied_user")))
