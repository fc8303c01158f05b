"""Slash commands and buttons of the Discord stand-in, from the person to the answer.

A person acts and an INTERACTION_CREATE goes out; the first answer must come within three seconds and only once, all
that answer is filled in through its webhook within fifteen minutes. Neither needs the bot's token.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from tests.standins import discord_fields as fields
from tests.standins import discord_objects as objects
from tests.standins.discord_content import check_message
from tests.standins.discord_fields import record
from tests.standins.discord_gateway import Gateway
from tests.standins.discord_ledger import Json, Refusal, Rule, Violation, form, unknown
from tests.standins.discord_messages import rewrite
from tests.standins.discord_objects import LOADING, Person
from tests.standins.discord_people import Allowed, Draft
from tests.standins.discord_routes import Asked, route
from tests.standins.discord_world import Place, id_of

FIRST_ANSWER, TOKEN_LIFE = 3.0, 15 * 60.0
SLASH, COMPONENT = 2, 3
DEFER, DEFER_UPDATE = 5, 6
ONLY_USERS = Allowed(frozenset({"users"}), replied_user=False)
WHERE = record(thread_id=fields.SNOWFLAKE, with_components=fields.text(5))


@dataclass(slots=True, eq=False)
class Interaction:
    """One act of a person. `answer` is the type of the first answer, `original` the message that it made or means."""

    id: str
    token: str
    kind: int
    channel_id: str
    person: Person
    at: float
    data: Json
    message: Json | None
    delivered: bool
    answer: int | None = None
    original: Json | None = None


class Interactions(Gateway):
    """The gateway's world with what people do to the bot's commands and buttons."""

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.commands: dict[str, dict[str, Json]] = {}
        self.creations: list[float] = []
        self.interactions: dict[str, Interaction] = {}

    def slash(self, person: Person, channel: Place, name: str, options: Json | None = None, **more: Any) -> Interaction:
        """Somebody uses a command; ValueError when none of this name is registered or an option does not fit."""
        data = self._command_data(name, options or {})
        return self._interact(SLASH, person, channel, data | more)

    def click(self, person: Person, message: Json, custom_id: str) -> Interaction:
        """Somebody presses a button below a message; ValueError when it is not there or disabled."""
        message = self.stored[message["channel_id"]].get(message["id"], message)
        parts = [inner for row in message["components"] for inner in row["components"]]
        found = next((one for one in parts if one.get("custom_id") == custom_id), None)
        if found is None or found.get("disabled"):
            raise ValueError(f"no component {custom_id!r} to press below message {message['id']}")
        data = {"custom_id": custom_id, "component_type": found["type"], "id": found.get("id", 2)}
        return self._interact(COMPONENT, person, message["channel_id"], data, message)

    def _command_data(self, name: str, options: Json) -> Json:
        used = next((one for one in self.commands.get("", {}).values() if one["name"] == name), None)
        if used is None:
            raise ValueError(f"no command /{name} is registered")
        known = {one["name"]: one for one in used.get("options") or ()}
        needed = [one for one, about in known.items() if about.get("required")]
        if options.keys() - known.keys() or set(needed) - options.keys():
            raise ValueError(f"/{name} takes {sorted(known)}, of which it needs {needed}")
        given = [{"name": one, "type": known[one]["type"], "value": value} for one, value in options.items()]
        data: Json = {"id": used["id"], "name": used["name"], "type": used["type"]}
        return data | ({"options": given} if given else {})

    def _interact(
        self, kind: int, person: Person, channel: Place, data: Json, message: Json | None = None
    ) -> Interaction:
        place = self.channels[id_of(channel)]
        token = "aW50ZXJhY3Rpb246" + secrets.token_urlsafe(120)
        number = self.snowflakes.next()
        made = Interaction(number, token, kind, place["id"], person, self.clock(), data, message, self.connected)
        self.interactions[number] = made
        self.ledger.timeline.append((place["id"], "in"))
        payload: Json = {
            "id": number,
            "application_id": str(self.bot.id),
            "type": kind,
            "data": data,
            "token": token,
            "version": 1,
            "channel_id": place["id"],
            "channel": {name: place[name] for name in ("id", "type", "name", "recipients") if name in place},
            "app_permissions": str(int(self.permissions(self.bot, place))),
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {"0": place.get("guild_id", "0")},
            "context": 0 if "guild_id" in place else 1,
            "attachment_size_limit": 10_485_760,
        }
        if "guild_id" in place:
            guild = self.guilds[place["guild_id"]]
            allowed = {"permissions": str(int(self.permissions(person, place)))}
            payload["member"] = self.members[guild["id"]][person.id] | allowed
            payload |= {"guild_id": guild["id"], "guild_locale": "en-US"}
            payload["guild"] = {"id": guild["id"], "locale": "en-US", "features": []}
        else:
            payload["user"] = objects.user(person)
        if message is not None:
            payload["message"] = self.show(message)
        self.emit("INTERACTION_CREATE", payload, channel_id=place["id"])
        return made

    def unanswered(self) -> list[Violation]:
        """Interactions that a client was told of and has not answered in time."""
        return [
            Violation(Rule.UNANSWERED_INTERACTION, f"{one.data.get('name') or one.data.get('custom_id')} ({one.id})")
            for one in self.interactions.values()
            if one.answer is None and one.delivered
        ]


# The first answer


@route(
    "POST",
    "/interactions/{interaction}/{token}/callback",
    body=fields.CALLBACK,
    open=True,
)
def callback(server: Any, asked: Asked) -> None:
    one = server.interactions.get(asked["interaction"])
    if one is None or one.token != asked["token"] or (server.clock() - one.at > FIRST_ANSWER and one.answer is None):
        raise unknown("Interaction")
    if one.answer is not None:
        raise Refusal(400, 40060, "Interaction has already been acknowledged.")
    kind = asked.body["type"]
    if kind == DEFER_UPDATE and one.kind == SLASH:
        raise form("type", "INTERACTION_CALLBACK_TYPE_INVALID", f"type {kind} does not answer this interaction")
    one.original = one.message if kind == DEFER_UPDATE else _thinking(server, one)
    one.answer = kind
    server.ledger.changed()


def _thinking(server: Any, one: Interaction) -> Json:
    """A message that shows "… is thinking" until it is edited."""
    more: Json = {"webhook_id": str(server.bot.id), "application_id": str(server.bot.id), "flags": LOADING}
    channel = server.channels[one.channel_id]
    if one.kind == SLASH:
        user = objects.user(one.person)
        owners = {"0": channel.get("guild_id", "0")}
        more["type"] = objects.COMMAND
        more["interaction"] = {"id": one.id, "type": one.kind, "name": one.data["name"], "user": user}
        about = {"id": one.id, "type": one.kind, "user": user, "authorizing_integration_owners": owners}
        more["interaction_metadata"] = about
    deferred: Json = server.post(channel, Draft(objects.user(server.bot), more=more))
    return deferred


# Everything after it


def _open(server: Any, asked: Asked) -> Interaction:
    """The interaction whose token a path holds, while it lives and after its first answer."""
    if asked["application"] != str(server.bot.id):
        raise unknown("Webhook")
    one = next((one for one in server.interactions.values() if one.token == asked["token"]), None)
    if one is None or one.answer is None:
        raise unknown("Webhook")
    if server.clock() - one.at > TOKEN_LIFE:
        raise Refusal(401, 50027, "Invalid Webhook Token")
    found: Interaction = one
    return found


def _message(server: Any, asked: Asked) -> tuple[Interaction, Json]:
    one = _open(server, asked)
    wanted = asked["message"]
    known = server.stored.get(one.channel_id, {}).values()
    mine = [message for message in known if message["author"]["id"] == str(server.bot.id)]
    number = (one.original or {"id": ""})["id"] if wanted == "@original" else wanted
    found = next((message for message in mine if message["id"] == number), None)
    if found is None:
        raise unknown("Message")
    return one, found


_PATH = "/webhooks/{application}/{token}"


@route("PATCH", _PATH + "/messages/{message}", body=fields.MESSAGE_EDIT, open=True)
def edit_answer(server: Any, asked: Asked) -> Json:
    one, message = _message(server, asked)
    check_message(server, server.channels[one.channel_id], asked.body, {}, edit=True)
    shown: Json = server.show(_edit(server, one, message, asked.body, asked))
    return shown


def _edit(server: Any, one: Interaction, message: Json, body: Json, asked: Asked) -> Json:
    """Change an answer; a deferred one becomes the answer that it announced."""
    method = "respond" if message["flags"] & LOADING else "edit"
    message["flags"] &= ~LOADING
    return rewrite(server, message, body, ONLY_USERS, method=method)
