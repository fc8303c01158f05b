"""The actions of the model on Slack that make no delivery, and the search for conversations by name."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from channels.actions import ActionFailed, Arguments, details, line_of, nearest
from channels.base import Times
from channels.failures import ApiError
from channels.message import InboundMessage, Origin, Place
from channels.receiver import Unreadable
from channels.slack import history
from channels.slack.api import Api
from channels.slack.events import read_message
from channels.slack.known import Known, names_of
from channels.slack.render import message_id

_ID = re.compile(r"[CDGUW](?=[A-Z]*\d)[A-Z0-9]{5,}")
# Seconds for which lists of names are kept.
_KEPT = 180.0
# The most pages of the list of people, with a thousand each.
_PAGES = 5
_PINS = {"pin": ("pins.add", "already_pinned"), "unpin": ("pins.remove", "no_pin")}
_CHANNEL = "id name user is_private is_archived is_ext_shared num_members topic purpose"
# The fields of a person that the model is told.
_PERSON = "id name real_name display_name title tz status_text is_admin is_bot deleted"


class Workspace:
    """The workspace of one bot. Its methods raise ActionFailed."""

    def __init__(self, api: Api, known: Known, times: Times) -> None:
        self._api = api
        self._known = known
        self._now = times.monotonic
        self._names: dict[str, tuple[float, dict[str, str]]] = {}

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        """See `channels.base.Channel`. A conversation with a person is opened, which is invisible."""
        found = await self._ident(wanted)
        if isinstance(found, tuple):
            return found
        person = found if found[0] in "UW" else ""
        if person:
            found = str((await self._api.call("conversations.open", {"users": found}))["channel"]["id"])
        return Origin(place=self._known.place(found), sender=person)

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """Carry out one of `settings.ACTIONS` that makes no delivery; returns its result for the model."""
        match name:
            case "read":
                return await self._read(replace(place, thread=arguments.thread or place.thread), arguments)
            case "pin" | "unpin":
                message = {"channel": place.chat, "timestamp": message_id(arguments.message_id)}
                return await self._pin(*_PINS[name], message)
            case "channel_info":
                asked = {"channel": place.chat, "include_num_members": "true"}
                found = (await self._api.call("conversations.info", asked))["channel"]
                words = {name: found.get(name, {}).get("value") for name in ("topic", "purpose")}
                return details({**found, **words}, _CHANNEL)
            case "user_info":
                user = (await self._api.call("users.info", {"user": arguments.person}))["user"]
                return details({**user, **(user.get("profile") or {})}, _PERSON)
        raise ActionFailed(f"{name} is not possible here")

    async def _ident(self, wanted: str) -> str | tuple[str, ...]:
        """The id of a name, or similar names."""
        if _ID.fullmatch(wanted):
            return wanted
        kind = "@" if wanted.startswith("@") else "#"
        until, names = self._names.get(kind, (0.0, {}))
        if until <= self._now():
            names = await (self._people() if kind == "@" else self._rooms())
            self._names[kind] = (self._now() + _KEPT, names)
        return nearest(wanted, names)

    async def _rooms(self) -> dict[str, str]:
        chats = [one.place.chat for one in await history.conversations(self._api, self._known)]
        return {f"#{self._known.name(chat)}": chat for chat in chats if self._known.name(chat)}

    async def _people(self) -> dict[str, str]:
        """The ids of people by each of their names; a name that several have gets the id appended."""
        found: dict[str, set[str]] = {}
        async for user in history.listed(self._api, "users.list", {"limit": 1000}, "members", _PAGES):
            for name in () if user.get("deleted") or user.get("is_bot") else names_of(user):
                found.setdefault(name.casefold(), set()).add(user["id"])
        named = [(name if len(ids) == 1 else f"{name} ({one})", one) for name, ids in found.items() for one in ids]
        return {f"@{name}": one for name, one in named}

    async def _read(self, place: Place, arguments: Arguments) -> str:
        before = message_id(arguments.before) if arguments.before else ""
        lines = []
        for message in await history.newest(self._api, place, before, arguments.limit):
            with suppress(Unreadable):
                found = read_message(history.read_as_event(message, place), self._known, mine=True)
                more = [f"[{message['reply_count']} replies]"] if message.get("reply_count") else []
                lines += [line_of(one, *more) for one in found if isinstance(one, InboundMessage)]
        return "\n".join(lines) or "nothing was said there"

    async def _pin(self, method: str, done_before: str, message: dict[str, str]) -> str:
        try:
            await self._api.call(method, message)
        except ApiError as error:
            if error.code != done_before:
                raise
        return "done"
