"""What the gateway of the Discord stand-in tells whom: which intent an event needs, and what a session sees of it."""

from tests.standins.discord_ledger import Json
from tests.standins.discord_objects import NO_INTENT, PRIVATE_THREAD, PRIVILEGED, Intent, without_content
from tests.standins.discord_people import People

GUILDS, DMS = Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES
# Which intent an event needs: in a guild, in direct messages. None: never told there.
_MESSAGES = (GUILDS, DMS)
_REACTIONS = (Intent.GUILD_MESSAGE_REACTIONS, Intent.DIRECT_MESSAGE_REACTIONS)
_MEMBERS = (Intent.GUILD_MEMBERS, None)
NEEDED: dict[str, tuple[Intent, Intent | None]] = {
    "MESSAGE_CREATE": _MESSAGES,
    "MESSAGE_UPDATE": _MESSAGES,
    "MESSAGE_DELETE": _MESSAGES,
    "MESSAGE_DELETE_BULK": _MESSAGES,
    "MESSAGE_REACTION_ADD": _REACTIONS,
    "MESSAGE_REACTION_REMOVE": _REACTIONS,
    "TYPING_START": (Intent.GUILD_MESSAGE_TYPING, Intent.DIRECT_MESSAGE_TYPING),
    "CHANNEL_PINS_UPDATE": (Intent.GUILDS, DMS),
    "GUILD_MEMBER_ADD": _MEMBERS,
    "GUILD_MEMBER_UPDATE": _MEMBERS,
    "INTERACTION_CREATE": (NO_INTENT, NO_INTENT),
}
FOR_GUILDS = (Intent.GUILDS, None)  # all other events


class Events(People):
    """The world with its people, as one application is told of it."""

    @property
    def flags(self) -> int:
        """The application's flags: which privileged intents are switched on."""
        return sum(bits[0 if self.verified else 1] for intent, bits in PRIVILEGED.items() if intent in self.granted)

    def needed(self, event: str, data: Json, channel_id: str | None) -> Intent | None:
        """The intents that a session must have to be told; None when the bot is told in no case."""
        place = self.channels.get(channel_id or "")
        guild_id = data.get("guild_id") or (place or {}).get("guild_id") or (data["id"] if "GUILD_" in event else None)
        hidden = place is not None and event != "INTERACTION_CREATE" and not self.sees(self.bot, place)
        outside = guild_id is not None and event != "GUILD_DELETE" and self.bot.id not in self.members[guild_id]
        if hidden or outside:
            return None
        return NEEDED.get(event, FOR_GUILDS)[0 if guild_id else 1]

    def shaped(self, event: str, data: Json, intents: Intent) -> Json:
        """The data of an event as a session with these intents gets it."""
        if event == "GUILD_CREATE":
            return self.whole_guild(data["id"], intents)
        if event not in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            return data
        place = self.channels[data["channel_id"]]
        shown = self.veil(self.show(data), readable=bool(intents & Intent.MESSAGE_CONTENT))
        shown["channel_type"] = place["type"]
        if "guild_id" in place:
            shown["guild_id"] = place["guild_id"]
            member = self.member_of(place, int(data["author"]["id"]))
            if member is not None and "webhook_id" not in data:
                shown["member"] = {name: value for name, value in member.items() if name != "user"}
            for one in shown["mentions"]:
                mentioned = self.member_of(place, int(one["id"])) or {}
                one["member"] = {name: value for name, value in mentioned.items() if name != "user"}
        return shown

    def veil(self, shown: Json, *, readable: bool) -> Json:
        """Take content away as the message content intent rules; direct messages, mentions and own ones keep theirs."""
        place = self.channels[shown["channel_id"]]
        if readable or "guild_id" not in place:
            return shown
        mine = str(self.bot.id)
        if shown["author"]["id"] != mine and mine not in [one["id"] for one in shown["mentions"]]:
            shown = without_content(shown)
        if shown.get("referenced_message"):
            shown["referenced_message"] = self.veil(shown["referenced_message"], readable=False)
        return shown

    def whole_guild(self, guild_id: str, intents: Intent) -> Json:
        """A guild with its channels, the threads that the bot sees and the members that the intents allow."""
        members = self.members[guild_id]
        full = Intent.GUILD_MEMBERS in intents and Intent.GUILD_PRESENCES in intents
        threads = [self.show_channel(one) for one in self.threads_of(guild_id)]
        mine = [one for one in threads if one["type"] != PRIVATE_THREAD or "member" in one]
        return self.guilds[guild_id] | {
            "joined_at": members[self.bot.id]["joined_at"],
            "large": len(members) > 250,
            "unavailable": False,
            "member_count": len(members),
            "voice_states": [],
            "members": list(members.values()) if full else [members[self.bot.id]],
            "channels": [dict(one) for one in self.channels_of(guild_id)],
            "threads": mine,
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }
