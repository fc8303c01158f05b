"""Reads from Slack the conversations that there are, the messages of one, and whether a message arrived."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from channels.base import Reached
from channels.failures import ApiError, Trouble
from channels.message import ChatKind, Place
from channels.outgoing import Delivery
from channels.slack.api import Api
from channels.slack.known import Known
from channels.slack.render import is_it

Json = dict[str, Any]
_PAGE = 200
# The most pages of a thread in which its last messages are looked for.
_PAGES = 5
_TYPES = {ChatKind.DIRECT: "im", ChatKind.GROUP: "mpim", ChatKind.CHANNEL: "channel"}
_ALL = "public_channel,private_channel,mpim,im"
# Milliseconds by which Slack's clock may be behind ours.
_CLOCKS_APART = 60_000


def position(at: int) -> str:
    """The least ts that a message sent at that time (milliseconds since the epoch) can have."""
    at = max(at, 0)
    return f"{at // 1000:010d}.{at % 1000:03d}000"


async def conversations(api: Api, known: Known) -> list[Reached]:
    """The conversations that the bot is in, direct ones included; they are cached in `known`. Raises ApiError."""
    found = []
    asked = {"types": _ALL, "exclude_archived": "true", "limit": _PAGE}
    async for one in listed(api, "users.conversations", asked, "channels"):
        kind = known.kind(one["id"], "im" if one.get("is_im") else "mpim" if one.get("is_mpim") else "channel")
        known.keep_room(one["id"], kind, str(one.get("name") or ""))
        found.append(Reached(known.place(one["id"])))
    return found


async def said(api: Api, place: Place, after: str, before: str, most: int) -> tuple[list[Json], bool]:
    """At most `most` messages between two ids, oldest first, and whether there are more. Raises ApiError."""
    found: list[Json] = []
    more = False
    asked = {"oldest": after or "0", **({"latest": before} if before else {})}
    async for one in _messages(api, place, asked):
        if one["ts"] <= after or (before and one["ts"] >= before) or one["ts"] == place.thread:
            continue
        # A conversation is listed newest first, so newer messages are dropped as older ones are found.
        found = sorted([one, *found], key=lambda one: str(one["ts"]))
        more = more or len(found) > most
        found = found[:most]
        if more and place.thread:
            break
    return found, more


async def around(api: Api, place: Place, before: str, most: int) -> list[Json]:
    """The first message of a thread and its last `most` messages before an id. Raises ApiError."""
    asked = {"channel": place.chat, "ts": place.thread, "latest": before, "limit": _PAGE}
    found: dict[str, Json] = {}
    async for one in listed(api, "conversations.replies", asked, "messages", _PAGES):
        found[str(one["ts"])] = one
    first, *said = [found[ts] for ts in sorted(found) if ts < before] or [{}]
    return [one for one in (first, *said[-most:]) if one]


async def newest(api: Api, place: Place, before: str, most: int) -> list[Json]:
    """The last `most` messages, oldest first; before an id unless that is empty. Raises ApiError."""
    found: dict[str, Json] = {}
    asked = {"limit": _PAGE if place.thread else most, **({"latest": before} if before else {})}
    async for one in _messages(api, place, asked):  # a conversation is listed newest first, a thread oldest first
        if not before or one["ts"] < before:
            found[one["ts"]] = one
        if len(found) >= most and not place.thread:
            break
    return [found[ts] for ts in sorted(found)][-most:]


async def find(api: Api, delivery: Delivery) -> str:
    """The ts of a message that was sent for that delivery; empty when it is not there. Raises ApiError."""
    asked = {"oldest": position(delivery.planned_at - _CLOCKS_APART), "include_all_metadata": "true"}
    for place in dict.fromkeys((delivery.place, replace(delivery.place, thread=""))):  # the thread may be refused
        try:
            async for message in _messages(api, place, asked):
                if is_it(message, delivery.nonce):
                    return str(message["ts"])
        except ApiError as error:
            if not place.thread or error.trouble is not Trouble.REFUSED:
                raise
    return ""


async def one(api: Api, place: Place, ts: str) -> Json:
    """One message of a conversation; empty when it does not exist. Raises ApiError."""
    async for message in _messages(api, place, {"oldest": ts, "latest": ts, "inclusive": "true"}):
        if message["ts"] == ts:
            return message
    return {}


def read_as_event(message: Json, place: Place) -> Json:
    """A message of the history as an event that `events.read_message` takes."""
    return {**message, "channel": place.chat, "channel_type": _TYPES.get(place.kind, "")}


def _messages(api: Api, place: Place, asked: Json) -> AsyncIterator[Json]:
    """List the messages of a conversation or thread; replies are only in the history of their thread."""
    method = "conversations.replies" if place.thread else "conversations.history"
    thread = {"ts": place.thread} if place.thread else {}
    return listed(api, method, {"channel": place.chat, **thread, "limit": _PAGE, **asked}, "messages")


async def listed(api: Api, method: str, asked: Json, what: str, most: int = 10_000) -> AsyncIterator[Json]:
    """List the items under the key `what` in all pages of a method, at most `most` pages. Raises ApiError."""
    cursor = ""
    for _ in range(most):
        answer = await api.call(method, {**asked, **({"cursor": cursor} if cursor else {})})
        for one in answer.get(what) or []:
            yield one
        cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
        if not cursor:
            return
