"""What the model can do on Discord with the `message` tool, and the carrying out of what becomes no delivery."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from channels.actions import ActionFailed, Arguments, details, line_of, nearest
from channels.discord.api import Api
from channels.discord.events import name_of, read_message
from channels.discord.world import THREADS, World, where_it_stands
from channels.failures import ApiError
from channels.message import Origin, Place
from channels.receiver import Unreadable

_THREAD_STARTER, _DIRECT = 21, 1
_KINDS = {2: "voice channel", 4: "category", 13: "stage", 15: "forum"} | dict.fromkeys(THREADS, "thread")
_NO_CONTENT = "Words are hidden where nobody named the bot: Message Content Intent is off in the Developer Portal."


async def perform(api: Api, world: World, name: str, place: Place, arguments: Arguments) -> str:
    """Carry out an action; words for the model. Raises ActionFailed."""
    place = replace(place, thread=arguments.thread or place.thread)
    try:
        if place.thread and place.thread not in world.spots:
            with suppress(ApiError):  # no thread was opened on that message yet
                found: Any = await api.get_channel(place.thread)
                if found.get("type") not in THREADS:
                    raise ActionFailed(f"this conversation has no thread {place.thread}")
                world.learn("THREAD_CREATE", found)
        world.check(place)
        match name:
            case "read":
                return await _read(api, world, place, arguments)
            case "pin" | "unpin":
                call, message = (api.pin_message if name == "pin" else api.unpin_message), arguments.message_id
                await where_it_stands(place, message, lambda channel: call(channel, message))
                return f"{name}ned"
            case "member_info":
                return await _member(api, world, place, arguments.person)
        return await _channel(api, world, place)
    except ValueError as error:
        raise ActionFailed(str(error)) from None


async def find(api: Api, world: World, wanted: str) -> Origin | Sequence[str]:
    """The conversation of an id, #channel or @person; else names that come near. Raises ActionFailed."""
    number = _number(world, wanted, wanted[:1])
    if not isinstance(number, str):
        return number
    if number not in world.spots and "@" not in wanted[:2]:
        with suppress(ApiError):  # it may be the id of a person
            channel: Any = await api.get_channel(number)  # an archived thread, or direct messages
            if channel["type"] == _DIRECT:
                return Origin(place=world.place(number, ""), sender=str(channel["recipients"][0]["id"]))
            world.learn("CHANNEL_UPDATE", channel)
    if number in world.spots:
        guild = world.spots[number].guild
        return Origin(place=world.place(number, guild), space=guild)
    return Origin(place=world.place(str((await api.start_private_message(number))["id"]), ""), sender=number)


def _number(world: World, wanted: str, sign: str) -> str | tuple[str, ...]:
    """The id that is meant by an id, a mention or a name; else names that come near. sign: see `World.names`."""
    number = wanted.strip("<#@!> ")
    return number if number.isdigit() else nearest(wanted, world.names(sign))


async def _read(api: Api, world: World, place: Place, arguments: Arguments) -> str:
    history = partial(api.messages, limit=arguments.limit, before=arguments.before or None)
    lines: list[str] = []
    for message in await where_it_stands(place, place.thread, history):
        one = message.get("referenced_message") if message.get("type") == _THREAD_STARTER else message
        with suppress(Unreadable):  # the message that a thread began with may be gone
            lines += map(line_of, read_message(one or {}, world, mine=True))
    return "\n".join(lines + [_NO_CONTENT] * (not world.content)) or "Nothing was said."


async def _member(api: Api, world: World, place: Place, wanted: str) -> str:
    number = _number(world, wanted, "@")
    if not isinstance(number, str):
        raise ActionFailed(f"nobody is known as {wanted}; near: {', '.join(number) or 'nobody'}")
    spot = world.spots.get(place.chat)
    member: Any = await api.get_member(spot.guild, number) if spot else {"user": await api.get_user(number)}
    user = member["user"]
    roles = ", ".join(world.roles.get(role, role) for role in member.get("roles", ()))
    told = {"name": name_of(user, member), "roles": roles, "joined_at": member.get("joined_at")}
    return details({**user, **told}, "id name username bot roles joined_at")


async def _channel(api: Api, world: World, place: Place) -> str:
    found: Any = await where_it_stands(place, place.thread, api.get_channel)
    if found["type"] == _DIRECT:
        return f"Direct messages with {name_of(found['recipients'][0], None)}, id {found['recipients'][0]['id']}"
    guild: Any = await api.get_guild(found["guild_id"])
    parent = world.spots.get(found.get("parent_id") or "")
    told = {"kind": _KINDS.get(found["type"], "channel"), "parent": parent.name if parent else ""}
    told |= {"server": guild["name"], "members": guild.get("approximate_member_count")}
    told |= found.get("thread_metadata", {})
    return details({**found, **told}, "id name kind parent parent_id topic archived server guild_id members")
