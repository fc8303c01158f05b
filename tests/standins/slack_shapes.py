"""Payloads as Slack sends them: people, conversations, messages, with every field that a real one carries.

Builders return new dicts, so that a test may change what it gets.
"""

import re
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.standins.slack_ledger import Json

TEAM, TEAM_DOMAIN = "T0HARKTEAM", "harktest"
APP, BOT, BOT_ID = "A0HARKAPP1", "U0HARKBOT1", "B0HARKBOT1"
BOT_TOKEN = "xoxb-standin-only-never-a-real-token"
APP_TOKEN = "xapp-1-standin-only-never-a-real-token"
SIGNING_SECRET = "standin-signing-secret-0123456789abc"
VERIFICATION_TOKEN = "standin-verification"

# What a manifest of an assistant asks for; a test takes some away.
_SCOPES = (
    "app_mentions:read assistant:write channels:history channels:read chat:write commands files:read files:write"
    " groups:history groups:read im:history im:read im:write mpim:history mpim:read mpim:write pins:write"
    " reactions:read reactions:write users:read"
)
SCOPES = frozenset(_SCOPES.split())
# Names of a manifest's `bot_events`, each with the scope without which Slack does not send it.
EVENT_SCOPES = {
    "app_home_opened": None,
    "app_mention": "app_mentions:read",
    "assistant_thread_context_changed": "assistant:write",
    "assistant_thread_started": "assistant:write",
    "channel_archive": "channels:read",
    "channel_left": "channels:read",
    "channel_rename": "channels:read",
    "channel_unarchive": "channels:read",
    "group_left": "groups:read",
    "member_joined_channel": "channels:read",
    "member_left_channel": "channels:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
    "team_join": "users:read",
}
EVENTS = frozenset(EVENT_SCOPES)

# Kind of conversation -> the first half of its scopes and its name in `types`.
SCOPE_PREFIX = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
TYPE_NAME = {"channel": "public_channel", "group": "private_channel", "im": "im", "mpim": "mpim"}

_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^>]*)?>")


@dataclass(frozen=True, slots=True)
class Person:
    """`team` differs for somebody who is here through Slack Connect."""

    id: str
    name: str
    real_name: str
    display_name: str = ""
    is_bot: bool = False
    team: str = TEAM
    deleted: bool = False

    def user(self) -> Json:
        """The "user" object of users.info."""
        foreign = self.team != TEAM
        return {
            "id": self.id,
            "team_id": self.team,
            "name": self.name,
            "deleted": self.deleted,
            "color": "9f69e7",
            "real_name": self.real_name,
            "tz": "Europe/Berlin",
            "tz_label": "Central European Time",
            "tz_offset": 3600,
            "profile": {
                "title": "",
                "real_name": self.real_name,
                "real_name_normalized": self.real_name,
                "display_name": self.display_name,
                "display_name_normalized": self.display_name,
                "image_72": "https://avatars.slack-edge.com/72.png",
                "team": self.team,
            },
            "is_admin": False,
            "is_owner": False,
            "is_primary_owner": False,
            "is_restricted": False,
            "is_ultra_restricted": False,
            "is_bot": self.is_bot,
            "is_app_user": False,
            "updated": 1_700_000_000,
            **({"is_stranger": True} if foreign else {"is_email_confirmed": True}),
        }


ALICE = Person("U0ALICE001", "alice", "Alice Archer", "alice")
BOB = Person("U0BOB00001", "bob", "Bob Baker")
HARK = Person(BOT, "hark", "Hark", "Hark", is_bot=True)
SLACKBOT = Person("USLACKBOT", "slackbot", "Slackbot", "Slackbot")


@dataclass(slots=True, eq=False)
class Room:
    """A conversation; `kind` is channel, group (private), im or mpim as in `channel_type`."""

    id: str
    kind: str
    name: str = ""
    members: list[str] = field(default_factory=list)
    archived: bool = False
    created: int = 1_700_000_000

    def channel(self, viewer: str = BOT) -> Json:
        """The "channel" object of conversations.info."""
        common: Json = {"id": self.id, "created": self.created, "is_archived": self.archived, "is_org_shared": False}
        if self.kind == "im":
            other = next((one for one in self.members if one != viewer), viewer)
            return {**common, "is_im": True, "user": other, "is_user_deleted": False, "priority": 0}
        flags = {"is_channel": "channel", "is_group": "group", "is_im": "im", "is_mpim": "mpim"}
        return {
            **common,
            "name": self.name,
            "name_normalized": self.name,
            **{flag: kind == self.kind for flag, kind in flags.items()},
            "is_private": self.kind != "channel",
            "is_member": viewer in self.members,
            "is_general": False,
            "is_shared": False,
            "is_ext_shared": False,
            "unlinked": 0,
            "creator": ALICE.id,
            "context_team_id": TEAM,
            "topic": {"value": "", "creator": "", "last_set": 0},
            "purpose": {"value": "", "creator": "", "last_set": 0},
            "previous_names": [],
            "num_members": len(self.members),
        }

    def command_name(self) -> str:
        """How slash commands name the conversation."""
        return {"im": "directmessage", "group": "privategroup"}.get(self.kind, self.name)


def bot_profile() -> Json:
    """Who stands behind a message of the app."""
    icons = {f"image_{size}": f"https://avatars.slack-edge.com/{size}.png" for size in (36, 48, 72)}
    return {
        "id": BOT_ID,
        "app_id": APP,
        "name": "Hark",
        "icons": icons,
        "deleted": False,
        "updated": 1_700_000_000,
        "team_id": TEAM,
    }


def mentioned(text: str) -> set[str]:
    """Ids of the people whom a text mentions."""
    return set(_MENTION.findall(text))


def rich_text(text: str, block_id: str = "Wrich") -> Json:
    """The block into which Slack's client puts what a person types."""
    elements: list[Json] = []
    at = 0
    for mention in _MENTION.finditer(text):
        if mention.start() > at:
            elements.append({"type": "text", "text": unescaped(text[at : mention.start()])})
        elements.append({"type": "user", "user_id": mention[1]})
        at = mention.end()
    if at < len(text):
        elements.append({"type": "text", "text": unescaped(text[at:])})
    return {
        "type": "rich_text",
        "block_id": block_id,
        "elements": [{"type": "rich_text_section", "elements": elements}],
    }


def escaped(text: str) -> str:
    """A person's words as they stand in `text`."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescaped(text: str) -> str:
    """The opposite of `escaped`."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def typed(person: Person, text: str, ts: str) -> Json:
    """A message as a person's client writes it; `text` is escaped, with mentions as <@U…>."""
    return {
        "user": person.id,
        "type": "message",
        "ts": ts,
        "client_msg_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{person.id}{ts}")),
        "text": text,
        "team": person.team,
        **({"user_team": person.team, "source_team": person.team} if person.team != TEAM else {}),
        **({"blocks": [rich_text(text)]} if text else {}),
    }


def by_bot(text: str, ts: str, **more: Any) -> Json:
    """A message of the app itself; None values are left out."""
    return {
        "user": BOT,
        "type": "message",
        "ts": ts,
        "bot_id": BOT_ID,
        "app_id": APP,
        "text": text,
        "team": TEAM,
        "bot_profile": bot_profile(),
        **{name: value for name, value in more.items() if value is not None},
    }


def event_callback(event: Json, event_id: str, event_time: int, *, external: bool = False) -> Json:
    """The envelope of the Events API around an event."""
    context = f"4-{event_id}"
    return {
        "token": VERIFICATION_TOKEN,
        "team_id": TEAM,
        "context_team_id": TEAM,
        "context_enterprise_id": None,
        "api_app_id": APP,
        "event": event,
        "type": "event_callback",
        "event_id": event_id,
        "event_time": event_time,
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": TEAM,
                "user_id": BOT,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": external,
        "event_context": context,
    }
