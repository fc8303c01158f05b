"""Slash commands, buttons, autocompletion and modals of the Discord stand-in, from the person to the answer.

A person acts and an INTERACTION_CREATE goes out; the first answer must come within three seconds and only once, all
others through its webhook within fifteen minutes. Neither needs the bot's token.
"""

import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.standins import discord_fields as fields
from tests.standins import discord_objects as objects
from tests.standins.discord_components import check_components
from tests.standins.discord_content import check_message
from tests.standins.discord_fields import check, record
from tests.standins.discord_gateway import Gateway
from tests.standins.discord_ledger import Json, Refusal, Rule, Violation, form, unknown
from tests.standins.discord_messages import note, rewrite, write
from tests.standins.discord_objects import EPHEMERAL, LOADING, Person
from tests.standins.discord_people import Allowed, Draft
from tests.standins.discord_routes import Asked, route
from tests.standins.discord_world import Place, id_of

FIRST_ANSWER, TOKEN_LIFE = 3.0, 15 * 60.0
SLASH, COMPONENT, TYPED, SUBMIT = 2, 3, 4, 5
MESSAGE, DEFER, DEFER_UPDATE, UPDATE, CHOICES, MODAL = 4, 5, 6, 7, 8, 9
ONLY_USERS = Allowed(frozenset({"users"}), replied_user=False)
WHERE = record(thread_id=fields.SNOWFLAKE, with_components=fields.text(5))
EXECUTE = record(thread_id=fields.SNOWFLAKE, with_components=fields.text(5), wait=fields.text(5))


@dataclass(slots=True, eq=False)
class Interaction:
    """One act of a person. `answer` is the type of the first answer, `original` the message that it made or means.

    `hidden` are messages that only the person sees; `choices` and `modal` what else was answered.
    """

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
    choices: list[Json] | None = None
    modal: Json | None = None
    hidden: list[Json] = field(default_factory=list)


class Interactions(Gateway):
    """The gateway's world with what people do to the bot's commands and buttons."""

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.commands: dict[str, dict[str, Json]] = {}
        self.creations: list[float] = []
        self.interactions: dict[str, Interaction] = {}

    def slash(self, person: Person, channel: Place, name: str, options: Json | None = None, **more: Any) -> Interaction:
        """Somebody uses a command, or a subcommand ("model set").

        ValueError when none of this name is registered or an option does not fit.
        """
        data = self._command_data(channel, name, options or {})
        return self._interact(SLASH, person, channel, data | more)

    def autocomplete(self, person: Person, channel: Place, name: str, option: str, typed: str) -> Interaction:
        """Somebody has typed the beginning of an option's value."""
        data = self._command_data(channel, name, {option: typed}, partial=True)
        inner = data["options"]
        while inner[0].get("options"):
            inner = inner[0]["options"]
        inner[0]["focused"] = True
        return self._interact(TYPED, person, channel, data)

    def click(self, person: Person, message: Json, custom_id: str, *, values: list[str] | None = None) -> Interaction:
        """Somebody presses a button below a message, or chooses values; ValueError when it is not there or disabled."""
        message = self.stored[message["channel_id"]].get(message["id"], message)
        parts = [inner for row in message["components"] for inner in row["components"]]
        found = next((one for one in parts if one.get("custom_id") == custom_id), None)
        if found is None or found.get("disabled"):
            raise ValueError(f"no component {custom_id!r} to press below message {message['id']}")
        data = {"custom_id": custom_id, "component_type": found["type"], "id": found.get("id", 2)}
        data |= {} if values is None else {"values": values}
        return self._interact(COMPONENT, person, message["channel_id"], data, message)

    def submit(self, person: Person, opened: Interaction, **values: str) -> Interaction:
        """Somebody fills in the modal that an interaction was answered with."""
        if opened.modal is None:
            raise ValueError("this interaction was answered with no modal")
        rows = [
            {"type": 1, "components": [{"type": 4, "custom_id": name, "value": value}]}
            for name, value in values.items()
        ]
        data = {"custom_id": opened.modal["custom_id"], "components": rows}
        return self._interact(SUBMIT, person, opened.channel_id, data, opened.message)

    def _command_data(self, channel: Place, name: str, options: Json, *, partial: bool = False) -> Json:
        guild_id = self.channels[id_of(channel)].get("guild_id", "-")
        registered = [*self.commands.get(guild_id, {}).values(), *self.commands.get("", {}).values()]
        whole = [one for one in registered if one["name"] == name]
        words = [name] if whole else name.split()
        path: list[Json] = []
        for word in words:
            among = path[-1].get("options") or () if path else registered
            found = [one for one in among if one["name"] == word and (not path or one["type"] in (1, 2))]
            if not found:
                raise ValueError(f"no command /{name} is registered")
            path.append(found[0])
        known = {one["name"]: one for one in path[-1].get("options") or ()}
        needed = [one for one, about in known.items() if about.get("required") and not partial]
        if (
            options.keys() - known.keys()
            or set(needed) - options.keys()
            or any(one["type"] < 3 for one in known.values())
        ):
            raise ValueError(f"/{name} takes {sorted(known)}, of which it needs {needed}")
        given = [{"name": one, "type": known[one]["type"], "value": value} for one, value in options.items()]
        for one in reversed(path[1:]):
            given = [{"name": one["name"], "type": one["type"]} | ({"options": given} if given else {})]
        data: Json = {"id": path[0]["id"], "name": path[0]["name"], "type": path[0]["type"]}
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
    files=True,
    open=True,
    query=record(with_response=fields.text(5)),
)
def callback(server: Any, asked: Asked) -> Json | None:
    one = server.interactions.get(asked["interaction"])
    if one is None or one.token != asked["token"] or (server.clock() - one.at > FIRST_ANSWER and one.answer is None):
        raise unknown("Interaction")
    if one.answer is not None:
        raise Refusal(400, 40060, "Interaction has already been acknowledged.")
    kind, data = asked.body["type"], asked.body.get("data") or {}
    fits = {SLASH: (4, 5, 9), COMPONENT: (4, 5, 6, 7, 9), TYPED: (8,), SUBMIT: (4, 5, 6, 7)}[one.kind]
    if kind not in fits or (kind in (DEFER_UPDATE, UPDATE) and one.message is None):
        raise form("type", "INTERACTION_CALLBACK_TYPE_INVALID", f"type {kind} does not answer this interaction")
    _ANSWERS[kind](server, one, data, asked)
    one.answer = kind
    server.ledger.changed()
    if asked.query.get("with_response") not in ("1", "true", "True"):
        return None
    told: Json = {"id": one.id, "type": one.kind}
    resource: Json = {"type": kind}
    if one.original is not None:
        flags = one.original["flags"]
        told |= {"response_message_id": one.original["id"], "response_message_loading": bool(flags & LOADING)}
        told["response_message_ephemeral"] = bool(flags & EPHEMERAL)
        resource["message"] = server.show(one.original)
    return {"interaction": told, "resource": resource}


def _respond(server: Any, one: Interaction, data: Json, asked: Asked) -> None:
    channel = server.channels[one.channel_id]
    check(data, fields.CALLBACK_MESSAGE, "data")
    check_message(server, channel, data, asked.files)
    one.original = _say(server, one, data, asked, "respond")


def _defer(server: Any, one: Interaction, data: Json, asked: Asked) -> None:
    """A message that shows "… is thinking" until it is edited."""
    check(data, record(flags=fields.INTEGER), "data")
    flags = (data.get("flags") or 0) & EPHEMERAL | LOADING
    one.original = _say(server, one, {"flags": flags}, asked, "")


def _defer_update(server: Any, one: Interaction, data: Json, asked: Asked) -> None:
    one.original = one.message


def _update(server: Any, one: Interaction, data: Json, asked: Asked) -> None:
    check(data, fields.WEBHOOK_EDIT, "data")
    check_message(server, server.channels[one.channel_id], data, asked.files, edit=True)
    assert one.message is not None
    one.original = rewrite(server, one.message, data, asked.files, ONLY_USERS)


def _choose(server: Any, one: Interaction, data: Json, asked: Asked) -> None:
    check(data, fields.AUTOCOMPLETE, "data")
    one.choices = data["choices"]


def _ask(server: Any, one: Interaction, data: Json, asked: Asked) -> None:
    check(data, fields.MODAL, "data")
    check_components(data["components"], "data", "components", modal=True)
    one.modal = data


_ANSWERS = {
    MESSAGE: _respond,
    DEFER: _defer,
    DEFER_UPDATE: _defer_update,
    UPDATE: _update,
    CHOICES: _choose,
    MODAL: _ask,
}


def _say(server: Any, one: Interaction, body: Json, asked: Asked, method: str) -> Json:
    """A message that answers an interaction: in the channel, or only for the person when it is ephemeral."""
    channel = server.channels[one.channel_id]
    more: Json = {"webhook_id": str(server.bot.id), "application_id": str(server.bot.id)}
    if one.kind == SLASH and method != "follow_up":
        more["type"] = objects.COMMAND
        user = objects.user(one.person)
        told = {"id": one.id, "type": one.kind, "name": one.data["name"], "user": user}
        owners = {"0": channel.get("guild_id", "0")}
        about = {"id": one.id, "type": one.kind, "user": user, "authorizing_integration_owners": owners}
        more |= {"interaction": told, "interaction_metadata": about}
    if body.get("flags", 0) & EPHEMERAL:
        built = objects.message(
            server.snowflakes.next(), channel["id"], objects.user(server.bot), body.get("content") or ""
        )
        built |= more | {
            "flags": body["flags"],
            "components": body.get("components") or [],
            "embeds": body.get("embeds") or [],
        }
        one.hidden.append(built)
        if method:
            note(server, method, built, body, new=True)
        return built
    if not method:
        deferred: Json = server.post(channel, Draft(objects.user(server.bot), more=more | {"flags": LOADING}))
        return deferred
    return write(server, channel, body, asked.files, method=method, default=ONLY_USERS, **more)


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
    known = [*one.hidden, *server.stored.get(one.channel_id, {}).values()]
    mine = [message for message in known if message["author"]["id"] == str(server.bot.id)]
    number = (one.original or {"id": ""})["id"] if wanted == "@original" else wanted
    found = next((message for message in mine if message["id"] == number), None)
    if found is None:
        raise unknown("Message")
    return one, found


_PATH = "/webhooks/{application}/{token}"


@route("POST", _PATH, body=fields.WEBHOOK_MESSAGE, files=True, open=True, query=EXECUTE)
def follow_up(server: Any, asked: Asked) -> Json:
    """One more message; directly after a deferral it takes the place of the deferred one, as documented."""
    one = _open(server, asked)
    channel, body = server.channels[one.channel_id], asked.body
    check_message(server, channel, body, asked.files)
    if one.original is not None and one.original["flags"] & LOADING:
        kept: Json = server.show(_edit(server, one, one.original, body, asked))
        return kept
    built: Json = server.show(_say(server, one, body, asked, "follow_up"))
    return built


@route("GET", _PATH + "/messages/{message}", open=True, query=WHERE)
def read_answer(server: Any, asked: Asked) -> Json:
    shown: Json = server.show(_message(server, asked)[1])
    return shown


@route("PATCH", _PATH + "/messages/{message}", body=fields.WEBHOOK_EDIT, files=True, open=True, query=WHERE)
def edit_answer(server: Any, asked: Asked) -> Json:
    one, message = _message(server, asked)
    check_message(server, server.channels[one.channel_id], asked.body, asked.files, edit=True)
    shown: Json = server.show(_edit(server, one, message, asked.body, asked))
    return shown


def _edit(server: Any, one: Interaction, message: Json, body: Json, asked: Asked) -> Json:
    """Change an answer; a deferred one becomes the answer that it announced."""
    method = "respond" if message["flags"] & LOADING else "edit"
    message["flags"] &= ~LOADING
    if not any(message is hidden for hidden in one.hidden):
        return rewrite(server, message, body, asked.files, ONLY_USERS, method=method)
    message |= {name: body[name] for name in ("content", "embeds", "components") if name in body}
    note(server, method, message, body)
    return message


@route("DELETE", _PATH + "/messages/{message}", open=True, query=WHERE)
def delete_answer(server: Any, asked: Asked) -> None:
    one, message = _message(server, asked)
    note(server, "delete", message, {})
    if message in one.hidden:
        one.hidden.remove(message)
    else:
        server.delete(message)
