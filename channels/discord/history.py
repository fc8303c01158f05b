"""Reads the history of conversations, and looks in it for a send of unknown outcome."""

from collections.abc import Sequence
from typing import Any

from channels.base import NotReadable, Page
from channels.discord.api import Api
from channels.discord.calls import message_of, unthreaded
from channels.discord.events import read_message, snowflake_at, unread
from channels.discord.world import UNKNOWN_CHANNEL, Spot, World, channel_of, where_it_stands
from channels.failures import ApiError, Trouble
from channels.message import ChatKind, Incoming, Place
from channels.outgoing import Delivery, NotSent, Sent, Unknown

_PAGE = 100
# The most pages in which a send is looked for.
_LOOKED_AT = 5
_AROUND = 10_000
# How many milliseconds before it was planned a message may have been made: as clocks differ, and as the placeholder of
# an interaction.
_AFTER_ALL = 16 * 60_000


async def page_of(api: Api, world: World, place: Place, after: str, before: str, most: int, roles: bool) -> Page:
    """A page of a conversation. roles: whether to request the roles of authors. Raises NotReadable."""
    limit = min(most, _PAGE)
    try:
        messages = await api.messages(channel_of(place), limit, after=after or "0")
        full = len(messages) == limit
        heard = [one for one in messages if not before or int(one["id"]) < int(before)]
        batch = await _read(api, world, place, heard, roles)
    except ApiError as error:
        raise _not_readable(error) from None
    return Page(batch, str(heard[-1]["id"]) if heard else "", full and len(heard) == len(messages))


async def around(api: Api, world: World, place: Place, before: str, most: int, roles: bool) -> Sequence[Incoming]:
    """See `channels.base.Threaded`. The first message of a thread is in its channel, of a forum post in the post."""
    first: list[Any] = []
    try:
        messages = await api.messages(channel_of(place), most, before=before)
        try:
            first = [await where_it_stands(place, place.thread, lambda channel: api.get_message(channel, place.thread))]
        except ApiError as error:
            if error.trouble is not Trouble.REFUSED:  # else the thread has no first message
                raise
        found = {str(one["id"]): one for one in (*first, *messages)}
        return await _read(api, world, place, list(found.values()), roles, mine=True)
    except ApiError as error:
        raise _not_readable(error) from None


async def _read(
    api: Api, world: World, place: Place, messages: Sequence[dict[str, Any]], roles: bool, *, mine: bool = False
) -> list[Incoming]:
    """Read messages of a place into events. roles: request the roles of authors. mine: include the bot's own."""
    batch: list[Incoming] = []
    spot = world.spots.get(channel_of(place)) or world.spots.get(place.chat)
    if spot is None and place.kind is not ChatKind.DIRECT:
        raise NotReadable("the bot does not see this channel any more")
    guild = spot.guild if spot else ""
    if place.thread:  # the gateway does not report archived threads
        world.spots.setdefault(place.thread, Spot(guild, "", place.chat))
    members: dict[str, Any] = {}
    for one in messages:
        try:
            if roles and guild and "webhook_id" not in one:
                one["member"] = await _member(api, guild, str(one["author"]["id"]), members)
            batch += read_message(one, world, guild, mine)
        except (ValueError, KeyError, TypeError) as error:
            batch.append(unread("MESSAGE_CREATE", one, world, error))
    return batch


def _not_readable(error: ApiError) -> NotReadable:
    never = error.trouble is Trouble.REFUSED
    return NotReadable(error.reason, None if never else max(error.retry_after, 5.0))


async def found(api: Api, world: World, delivery: Delivery, again: float) -> Sent | NotSent | Unknown:
    """Whether a send is in its conversation: a message with the same author, text, file and target of a reply.

    again: seconds after which to send it again if it is not there. Raises ApiError.
    """
    wanted, absent = message_of(delivery), NotSent(again, "it was not there; sent again")
    early = _AFTER_ALL if delivery.respond else _AROUND
    after = snowflake_at(delivery.planned_at - early)
    try:
        for _ in range(_LOOKED_AT):
            messages = await api.messages(channel_of(delivery.place), _PAGE, after=after)
            for one in messages:
                if _is_it(one, world, delivery, str(wanted.get("content", ""))):
                    return Sent(str(one["id"]))
            if len(messages) < _PAGE:  # it may stand in the channel, because the thread was refused
                below = delivery.place.thread
                return await found(api, world, unthreaded(delivery), again) if below else absent
            after = messages[-1]["id"]
    except ApiError as error:
        if error.code == UNKNOWN_CHANNEL and delivery.place.thread:  # the thread was never opened
            return await found(api, world, unthreaded(delivery), again)
        if error.trouble is not Trouble.REFUSED:
            raise
        return Unknown(f"the bot cannot look whether it was sent: {error.reason}")
    return Unknown("too much was said since it was sent to look whether it is there")


async def _member(api: Api, guild: str, user: str, known: dict[str, Any]) -> Any:
    """A member of a server with their roles; None if they have left it."""
    if user not in known:
        try:
            known[user] = await api.get_member(guild, user)
        except ApiError as error:
            if error.trouble is not Trouble.REFUSED:
                raise
            known[user] = None
    return known[user]


def _is_it(message: dict[str, Any], world: World, delivery: Delivery, text: str) -> bool:
    reference = message.get("message_reference")
    replied = reference.get("message_id", "") if isinstance(reference, dict) else ""
    target = "" if delivery.reply_to == delivery.place.thread else delivery.reply_to
    files = [file.get("filename") for file in message.get("attachments") or ()]
    named = [] if delivery.file is None else [delivery.file.name.replace(" ", "_")]
    return (
        message.get("author", {}).get("id") == world.me
        and str(message.get("content", "")).strip() == text.strip()
        and (replied == target or not replied or bool(delivery.respond))
        and files == named
    )
