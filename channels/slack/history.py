"""What stands in Slack: which conversations there are, what was said in one, whether a message arrived."""

from collections.abc import AsyncIterator
from typing import Any

from channels.base import Reached
from channels.message import ChatKind, Place
from channels.outgoing import Delivery
from channels.slack.api import Api
from channels.slack.calls import is_it
from channels.slack.events import Me
from channels.slack.known import Known, Room

_PAGE = 200
_TYPES = {ChatKind.DIRECT: "im", ChatKind.GROUP: "mpim", ChatKind.CHANNEL: "channel"}
_ALL = "public_channel,private_channel,mpim,im"
_CLOCKS_APART = 60_000
"""Milliseconds by which Slack's clock may be behind ours."""


def position(at: int) -> str:
    """The ts that a message of that moment (milliseconds) would have at the least."""
    at = max(at, 0)
    return f"{at // 1000:010d}.{at % 1000:03d}000"


async def conversations(api: Api, me: Me, known: Known) -> list[Reached]:
    """Those that the bot is in, direct ones included; `known` learns of them. Raises ApiError."""
    found = []
    asked = {"types": _ALL, "exclude_archived": "true", "limit": _PAGE}
    async for channels in _pages(api, "users.conversations", asked, "channels"):
        for one in channels:
            kinds = {"is_im": "im", "is_mpim": "mpim"}
            kind = known.kind(one["id"], next((kind for flag, kind in kinds.items() if one.get(flag)), "channel"))
            known.keep_room(one["id"], Room(kind, str(one.get("name") or "")))
            found.append(Reached(Place(channel="slack", account=me.id, chat=one["id"], kind=kind)))
    return found


async def said(api: Api, place: Place, after: str, before: str, most: int) -> tuple[list[dict[str, Any]], bool]:
    """At most `most` messages between two of them, oldest first, and whether there are more. Raises ApiError."""
    found: list[dict[str, Any]] = []
    more = False
    asked = {"oldest": after or "0", **({"latest": before} if before else {})}
    async for page in _messages(api, place, asked):
        inside = [one for one in page if after < one["ts"] and (not before or one["ts"] < before)]
        # A conversation comes newest first: what is too new is dropped as older ones are found.
        found = sorted((one for one in [*found, *inside] if one["ts"] != place.thread), key=lambda one: one["ts"])
        more = more or len(found) > most
        found = found[:most]
        if more and place.thread:
            break
    return found, more


async def find(api: Api, delivery: Delivery) -> str:
    """The ts of a message that was sent for that delivery; empty when it is not there. Raises ApiError."""
    asked = {"oldest": position(delivery.planned_at - _CLOCKS_APART), "include_all_metadata": "true"}
    async for page in _messages(api, delivery.place, asked):
        for message in page:
            if is_it(message, delivery.nonce):
                return str(message["ts"])
    return ""


async def one(api: Api, place: Place, ts: str) -> dict[str, Any]:
    """A message of the conversation; empty when it is gone. Raises ApiError."""
    async for page in _messages(api, place, {"oldest": ts, "latest": ts, "inclusive": "true"}):
        for message in page:
            if message["ts"] == ts:
                return message
    return {}


def read_as_event(message: dict[str, Any], place: Place) -> dict[str, Any]:
    """A message of the history as an event that `events.read_message` takes."""
    return {**message, "channel": place.chat, "channel_type": _TYPES.get(place.kind, "")}


def _messages(api: Api, place: Place, asked: dict[str, Any]) -> AsyncIterator[list[dict[str, Any]]]:
    """Replies stand in no history but that of their thread."""
    method = "conversations.replies" if place.thread else "conversations.history"
    thread = {"ts": place.thread} if place.thread else {}
    return _pages(api, method, {"channel": place.chat, **thread, "limit": _PAGE, **asked}, "messages")


async def _pages(api: Api, method: str, asked: dict[str, Any], what: str) -> AsyncIterator[list[dict[str, Any]]]:
    cursor = ""
    while True:
        answer = await api.call(method, {**asked, **({"cursor": cursor} if cursor else {})})
        yield answer.get(what) or []
        cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
        if not cursor:
            return
