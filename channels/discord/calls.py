"""Carries out deliveries with calls of Discord's REST API."""

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import discord

from channels.base import CommandInfo, CommandOption
from channels.discord.api import ONE, Api
from channels.discord.events import text_of
from channels.discord.world import UNKNOWN_MESSAGE, World, channel_of, where_it_stands
from channels.failures import ApiError
from channels.message import Place
from channels.outgoing import Action, Delivery, OutgoingFile

# The actions that a Discord channel carries out.
ACTIONS = frozenset(Action) - {Action.PREVIEW}
MESSAGES = "/channels/{channel_id}/messages"
_CUSTOM_EMOJI = re.compile(r"<?a?:?(\w{1,64}:\d+)>?")
_SILENT, _VOICE_MESSAGE = 1 << 12, 1 << 13
# Of a voice message: the samples of Opus in a second, and a loudness of 0 to 255.
_SAMPLES, _LOUDNESS = 48_000, 96
_IN_A_ROW = 5
_LABEL, _CUSTOM_ID = 80, 100
# Milliseconds for which an interaction can be answered, minus the time that a call may take.
_HANDLE_LIFE = 15 * 60_000 - 30_000


def webhook_of(respond: str, now: int) -> dict[str, str] | None:
    """The ids of the webhook that answers an interaction; None once it has expired. now: in milliseconds.

    None for a click on a button too: the webhook would edit the message with the button, and the answer is a message of
    its own.
    """
    match respond.split(" "):
        case [application, token, at] if now - int(at) < _HANDLE_LIFE:
            return {"webhook_id": application, "webhook_token": token}
    return None


def unthreaded(delivery: Delivery) -> Delivery:
    """The delivery as a reply in the channel, to the message on which no thread could be opened."""
    return replace(delivery, place=replace(delivery.place, thread=""), reply_to=delivery.place.thread)


def message_of(delivery: Delivery) -> dict[str, Any]:
    """The content of a message: body, buttons and no mentions. Raises ValueError when the body cannot be read."""
    message: dict[str, Any] = json.loads(delivery.body) if delivery.body or delivery.action is not Action.FILE else {}
    message["allowed_mentions"] = {"parse": [], "replied_user": False}
    buttons = [
        {"type": 2, "style": 2, "label": one.label[:_LABEL], "custom_id": one.sends[:_CUSTOM_ID]}
        for one in delivery.buttons
    ]
    rows = range(0, len(buttons), _IN_A_ROW)
    message["components"] = [{"type": 1, "components": buttons[at : at + _IN_A_ROW]} for at in rows]
    return message


async def post(api: Api, delivery: Delivery) -> str:
    """Send a message and return its id. The same nonce within a few minutes gives the same message. Raises ApiError."""
    message, channel = message_of(delivery), channel_of(delivery.place)
    message |= {"nonce": str(delivery.nonce), "enforce_nonce": True}
    if delivery.silent:
        message["flags"] = message.get("flags", 0) | _SILENT
    # The first message of a thread is in another channel for Discord.
    if delivery.reply_to and delivery.reply_to != delivery.place.thread:
        message["message_reference"] = {"message_id": delivery.reply_to, "fail_if_not_exists": False}
    voice = await asyncio.to_thread(_voice, delivery.file) if delivery.file and delivery.file.says else {}
    if voice:
        message |= {**voice, "flags": message.get("flags", 0) | voice["flags"]}
    return await _upload(api, delivery, message, "POST", MESSAGES, channel_id=channel)


def _voice(file: OutgoingFile) -> dict[str, Any]:
    """What makes a message with a spoken answer, a voice message; nothing if it is not Ogg with Opus.

    Discord wants its length, and a picture of its loudness, which is flat here. Blocking. Raises OSError.
    """
    with file.open() as content:
        sound = content.read()
    last = sound.rfind(b"OggS")  # its last page ends with so many samples
    if not sound.startswith(b"OggS") or not (samples := int.from_bytes(sound[last + 6 : last + 14], "little")):
        return {}
    seconds = samples / _SAMPLES
    picture = base64.b64encode(bytes([_LOUDNESS]) * min(256, int(10 * seconds) + 1)).decode()
    about = {"id": 0, "filename": file.name, "duration_secs": round(seconds, 3), "waveform": picture}
    return {"flags": _VOICE_MESSAGE, "attachments": [about]}


async def answer(api: Api, delivery: Delivery, webhook: dict[str, str]) -> str:
    """Replace the placeholder of an interaction by the answer; returns the id of the message. Raises ApiError."""
    path = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
    return await _upload(api, delivery, message_of(delivery), "PATCH", path, **webhook)


async def change(api: Api, delivery: Delivery) -> None:
    """Edit, delete or react. Raises ApiError."""
    try:
        await where_it_stands(delivery.place, delivery.target, partial(_change, api, delivery))
    except ApiError as error:
        if delivery.action is not Action.DELETE or error.code != UNKNOWN_MESSAGE:  # else it was deleted before
            raise


async def exchange(api: Api, target: str, emoji: str, before: str, channel: str) -> None:
    """Put one reaction in the place of another. Raises ApiError."""
    await api.add_reaction(channel, target, _CUSTOM_EMOJI.sub(r"\1", emoji))
    await api.remove_own_reaction(channel, target, _CUSTOM_EMOJI.sub(r"\1", before))


async def _change(api: Api, delivery: Delivery, channel: str) -> None:
    target = delivery.target
    match delivery.action:
        case Action.EDIT:
            await api.call("PATCH", ONE, json=message_of(delivery), channel_id=channel, message_id=target)
        case Action.REACT if delivery.body:
            await api.add_reaction(channel, target, _CUSTOM_EMOJI.sub(r"\1", delivery.body))
        case Action.REACT:
            message: Any = await api.get_message(channel, target)
            for reaction in message.get("reactions", ()):
                if reaction.get("me"):
                    emoji, number = reaction["emoji"]["name"], reaction["emoji"].get("id")
                    await api.remove_own_reaction(channel, target, f"{emoji}:{number}" if number else emoji)
        case Action.DELETE:
            await api.delete_message(channel, target)


async def open_thread(api: Api, world: World, place: Place) -> None:
    """Open the thread of a place on the message of the same id. Raises ApiError."""
    name = ""
    with contextlib.suppress(ApiError):  # it is only for its name
        origin: Any = await api.get_message(place.chat, place.thread)
        name = " ".join(text_of(origin, world).split())[:80]
    ids = {"channel_id": place.chat, "message_id": place.thread}
    world.learn("THREAD_CREATE", await api.call("POST", f"{ONE}/threads", json={"name": name or "Conversation"}, **ids))


async def _upload(api: Api, delivery: Delivery, message: dict[str, Any], method: str, path: str, **ids: str) -> str:
    """Make the call, with the file if there is one; returns the id of the message.

    Raises ApiError, and OSError for a file that cannot be read.
    """
    if delivery.file is None:
        sent = await api.call(method, path, json=message, **ids)
    else:
        name = delivery.file.name
        with delivery.file.open() as content, contextlib.closing(discord.File(content, filename=name)) as file:
            part = {"name": "files[0]", "value": file.fp, "filename": name}
            part["content_type"] = delivery.file.mime or "application/octet-stream"
            message.setdefault("attachments", [{"id": 0, "filename": name}])
            form = [{"name": "payload_json", "value": json.dumps(message)}, part]
            sent = await api.call(method, path, files=[file], form=form, **ids)
    return str(sent.get("id", "")) if isinstance(sent, dict) else ""


def menu_of(commands: Sequence[CommandInfo]) -> list[dict[str, Any]]:
    """The commands as Discord lists them."""
    return [_listed(one, options=[_listed(it, type=3, required=it.required) for it in one.options]) for one in commands]


def _listed(one: CommandInfo | CommandOption, **more: object) -> dict[str, Any]:
    return {"name": one.name, "description": one.help[:100] or one.name, **more}
