"""Discord's objects as the documentation shows them, and the bits of its flags. Ids are strings, as in the API."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntFlag
from typing import Any

from tests.standins.discord_ledger import Json

TOKEN = "MTA5OTk4ODc3NjY1NTQ0MzMyMg.GfakeA.stand-in-token-of-a-bot-0123456789abc"
EPOCH = 1_420_070_400_000  # the first millisecond of 2015
CODE = re.compile(r"```.*?```|``.*?``|`[^`\n]*`", re.DOTALL)
USER_MENTION, ROLE_MENTION = re.compile(r"<@!?(\d+)>"), re.compile(r"<@&(\d+)>")
EVERYONE = re.compile(r"@(everyone|here)\b")
LINK = re.compile(r"(?<!<)https?://[^\s<>)]+")  # one in angle brackets has no preview

# Types of channels and messages
TEXT, DM, VOICE, CATEGORY, ANNOUNCEMENT, PUBLIC_THREAD, PRIVATE_THREAD, FORUM = 0, 1, 2, 4, 5, 11, 12, 15
THREADS = (10, PUBLIC_THREAD, PRIVATE_THREAD)
DEFAULT, PINNED, JOINED, BOOSTED, THREAD_CREATED, REPLY, COMMAND, THREAD_STARTER = 0, 6, 7, 8, 18, 19, 20, 21

# Message flags
SUPPRESS_EMBEDS, HAS_THREAD, EPHEMERAL, LOADING = 1 << 2, 1 << 5, 1 << 6, 1 << 7
SUPPRESS_NOTIFICATIONS, VOICE_MESSAGE, COMPONENTS_V2, HAS_SNAPSHOT = 1 << 12, 1 << 13, 1 << 15, 1 << 14


class Permission(IntFlag):
    """The permissions that this server asks for."""

    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    USE_APPLICATION_COMMANDS = 1 << 31
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38
    SEND_VOICE_MESSAGES = 1 << 46
    SEND_POLLS = 1 << 49
    PIN_MESSAGES = 1 << 51


ALL = Permission((1 << 52) - 1)
# What @everyone may do in a new server, MENTION_EVERYONE included.
USUAL = ~(
    Permission.ADMINISTRATOR
    | Permission.MANAGE_CHANNELS
    | Permission.MANAGE_MESSAGES
    | Permission.MANAGE_THREADS
    | Permission.PIN_MESSAGES
)


class Intent(IntFlag):
    """The gateway intents that select events here; the others are accepted."""

    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_MESSAGE_REACTIONS = 1 << 10
    GUILD_MESSAGE_TYPING = 1 << 11
    DIRECT_MESSAGES = 1 << 12
    DIRECT_MESSAGE_REACTIONS = 1 << 13
    DIRECT_MESSAGE_TYPING = 1 << 14
    MESSAGE_CONTENT = 1 << 15


NO_INTENT = Intent(0)
KNOWN_INTENTS = sum(1 << bit for bit in (*range(17), 20, 21, 24, 25))
# The bits of an application's flags: (in 100 servers or more, below that).
PRIVILEGED = {
    Intent.GUILD_PRESENCES: (1 << 12, 1 << 13),
    Intent.GUILD_MEMBERS: (1 << 14, 1 << 15),
    Intent.MESSAGE_CONTENT: (1 << 18, 1 << 19),
}


@dataclass(frozen=True, slots=True)
class Person:
    """An account, of a human being or a bot."""

    id: int
    username: str
    global_name: str | None = None
    bot: bool = False

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


HARK = Person(1_099_988_776_655_443_322, "hark", bot=True)
ALICE = Person(80_351_110_224_678_912, "alice", "Alice")
BOB = Person(53_908_232_506_183_680, "bob", "Bob")
CAROL = Person(175_928_847_299_117_063, "carol", "Carol")
OTHER_BOT = Person(204_255_221_017_214_977, "otherbot", bot=True)


class Snowflakes:
    """Ids that grow and hold the time at which they were made. `wall` is Unix time in seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self.wall = wall
        self.last = 0

    def next(self) -> str:
        self.last = max((int(self.wall() * 1000) - EPOCH) << 22, self.last + 1)
        return str(self.last)


def snowflake_time(snowflake: str) -> str:
    """The time in an id, as the API writes times."""
    return iso(((int(snowflake) >> 22) + EPOCH) / 1000)


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def user(person: Person) -> Json:
    """A user object."""
    built: Json = {
        "id": str(person.id),
        "username": person.username,
        "discriminator": "4711" if person.bot else "0",
        "global_name": person.global_name,
        "avatar": None,
        "avatar_decoration_data": None,
        "public_flags": 0,
    }
    return built | {"bot": True} if person.bot else built


def role(role_id: str, name: str, permissions: int, *, mentionable: bool = False, position: int = 0) -> Json:
    return {
        "id": role_id,
        "name": name,
        "description": None,
        "permissions": str(int(permissions)),
        "position": position,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "icon": None,
        "unicode_emoji": None,
        "managed": False,
        "mentionable": mentionable,
        "flags": 0,
    }


def member(person: Person, joined_at: str, roles: list[str]) -> Json:
    """A guild member with its user."""
    return {
        "user": user(person),
        "nick": None,
        "avatar": None,
        "banner": None,
        "roles": roles,
        "joined_at": joined_at,
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "pending": False,
        "communication_disabled_until": None,
        "flags": 0,
    }


def guild(guild_id: str, name: str, owner: Person) -> Json:
    """A guild, without the parts that only GUILD_CREATE has."""
    return {
        "id": guild_id,
        "name": name,
        "owner_id": str(owner.id),
        "icon": None,
        "splash": None,
        "banner": None,
        "description": None,
        "region": "us-west",
        "afk_channel_id": None,
        "afk_timeout": 300,
        "verification_level": 0,
        "default_message_notifications": 1,
        "explicit_content_filter": 0,
        "features": [],
        "emojis": [],
        "stickers": [],
        "mfa_level": 0,
        "application_id": None,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "rules_channel_id": None,
        "public_updates_channel_id": None,
        "safety_alerts_channel_id": None,
        "vanity_url_code": None,
        "premium_tier": 0,
        "premium_subscription_count": 0,
        "premium_progress_bar_enabled": False,
        "preferred_locale": "en-US",
        "nsfw_level": 0,
        "max_members": 500_000,
        "roles": [role(guild_id, "@everyone", USUAL & ALL)],
    }


def guild_channel(channel_id: str, guild_id: str, name: str, kind: int, position: int) -> Json:
    built: Json = {
        "id": channel_id,
        "type": kind,
        "guild_id": guild_id,
        "name": name,
        "position": position,
        "parent_id": None,
        "topic": None,
        "nsfw": False,
        "rate_limit_per_user": 0,
        "permission_overwrites": [],
        "last_message_id": None,
        "last_pin_timestamp": None,
        "flags": 0,
    }
    if kind == FORUM:
        built |= {"available_tags": [], "default_reaction_emoji": None, "default_sort_order": None}
    return built


def thread(thread_id: str, parent: Json, name: str, kind: int, owner: Person, now: str) -> Json:
    built: Json = {
        "id": thread_id,
        "type": kind,
        "guild_id": parent["guild_id"],
        "parent_id": parent["id"],
        "owner_id": str(owner.id),
        "name": name,
        "last_message_id": None,
        "rate_limit_per_user": 0,
        "message_count": 0,
        "member_count": 1,
        "total_message_sent": 0,
        "thread_metadata": {
            "archived": False,
            "auto_archive_duration": 1440,
            "archive_timestamp": now,
            "create_timestamp": now,
            "locked": False,
        },
        "flags": 0,
    }
    if parent["type"] == FORUM:
        built["applied_tags"] = []
    if kind == PRIVATE_THREAD:
        built["thread_metadata"]["invitable"] = True
    return built


def message(message_id: str, channel_id: str, author: Json, content: str, **more: Any) -> Json:
    """A message object; times come from its id."""
    return {
        "id": message_id,
        "channel_id": channel_id,
        "type": DEFAULT,
        "author": author,
        "content": content,
        "timestamp": snowflake_time(message_id),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": False,
        "mentions": [],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        "components": [],
        "pinned": False,
        "flags": 0,
        **more,
    }


def without_content(shown: Json) -> Json:
    """A message as an application without the message content intent sees it."""
    empty: Json = {"content": "", "attachments": [], "embeds": [], "components": []}
    emptied = {name: value for name, value in shown.items() if name != "poll"} | empty
    if "message_snapshots" in emptied:
        emptied["message_snapshots"] = [{"message": one["message"] | empty} for one in emptied["message_snapshots"]]
    return emptied
