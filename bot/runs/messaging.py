"""The `message` tool: the model sends messages besides its answer and acts on messages, here or in other conversations.

Messages, edits, reactions and the like become persisted deliveries named after the call, so that a crash repeats
nothing; the call waits up to PATIENCE seconds and tells the model their state. Other actions are carried out by the
channel at once. The tool acts only where the bot may speak: in groups, and with people, that the bot lets in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from pydantic import Field, create_model

from agent.errors import ToolError
from agent.message import Provenance, ToolOutput, well_formed
from agent.tools.base import CallContext, Parameters, Sink, Tool
from bot.commands.registry import COMMAND_SIGNS
from bot.config.values import MESSAGE
from bot.outbox import Outbox
from bot.people.access import FOR_GUESTS, LOCAL
from bot.people.accounts import Account, is_of
from bot.people.conversations import NAME_CHANNEL, Conversations
from bot.people.people import chat_of
from bot.persistence.deliveries import ToldOf
from bot.persistence.turns import Turn
from bot.runs.media import outgoing_file
from bot.runs.rooms import Rooms
from bot.speech import button, on_wish, spoken
from channels.actions import LOOKS, REPLY, THREAD_CREATE, ActionFailed, Arguments, ToolAction
from channels.base import Channel
from channels.message import Origin, Place
from channels.outgoing import IDEMPOTENT, Action, Button, Planned
from channels.session_key import parse
from channels.sources import Source, tool_message
from heartbeat.quiet import is_silent

# For how many seconds a call waits until its messages are sent.
PATIENCE = 20.0
_SENDS = (Action.SEND, Action.FILE)
# Characters of a caption, and bytes of the label of a button.
_CAPTION = 800
_LABEL = 64
_DESCRIPTION = (
    "Send messages, and act on messages, in this conversation or another one. Your answer is delivered here by itself:"
    " use this for anything else, and do not repeat in the answer what you sent."
)


# Plans the blocks of a call. Takes the place, the blocks, who is told of them, and the most messages that the turn may
# send to others (0: any number). Returns False when that number is exceeded.
Send = Callable[[Place, Sequence[Planned], ToldOf, int], Awaitable[bool]]


@dataclass(eq=False, slots=True)
class Messaging:
    """Makes the `message` tool of each run."""

    # Draws the number that tells deliveries of equal text apart.
    nonce: Callable[[], int]
    outbox: Outbox
    conversations: Conversations
    # Hold the files that are sent.
    rooms: Rooms
    # How far the tool may act: only in the conversation of its run, on the same channel, or everywhere.
    reach: Literal["conversation", "channel", "all"]

    def tools(self, turn: Turn, trusted: bool, send: Send) -> "Sequence[MessageTool]":
        """Return the tool of a run; empty if no channel has an action for it.

        The tool has the actions of the account of the session; of all accounts, if the session belongs to no channel.
        trusted: whether the senders are trusted; for others the tool acts only in the conversation. send: plans the
        blocks.
        """
        key, accounts = parse(turn.session_key), self.conversations.accounts
        own = accounts.of_session(key)
        where: Sequence[Account] = (own,) if own else () if key.channel else accounts
        actions = {action.name: action for one in where for action in one.section.tool_actions()}
        reach = self.reach if trusted else "conversation"
        return (MessageTool(replace(self, reach=reach), turn, tuple(actions.values()), send),) if actions else ()


class MessageTool(Tool[Parameters]):
    """The `message` tool of one run."""

    name = MESSAGE
    speaks = True

    def __init__(self, given: Messaging, turn: Turn, actions: tuple[ToolAction, ...], send: Send) -> None:
        self.description, self.parameters = _told(actions)
        self._given = given
        self._turn = turn
        self._actions = {one.name: one for one in actions}
        self._send = send

    async def sink(self, parameters: Parameters, context: CallContext) -> Sink:
        """See Tool: to look and to write here is free, all else, other threads too, is sent to others."""
        fields = dict(parameters)
        action = self._actions[fields.pop("action")]
        elsewhere = fields.get("to") or fields.get("thread") not in (None, "", self._turn.place.thread)
        return "send" if elsewhere and action.name not in LOOKS else "look"

    async def run(self, parameters: Parameters, context: CallContext) -> ToolOutput:
        """Carry out a call and return what became of it. Raises ToolError."""
        fields = dict(parameters)
        action = self._actions[fields.pop("action")]
        asked = _checked(action, fields)
        try:
            origin = await self._target(action, asked, context.as_guest)
            place = origin.place
            channel = self._given.outbox.serving(place)
            if channel is None:
                raise ToolError("The channel is not connected at the moment; try it later.")
            if "message_id" in (*action.needs, *action.takes):
                asked = asked.model_copy(update={"message_id": asked.message_id or self._asking(place)})
            if action.makes is None:
                text = await channel.perform(action.name, place, asked)
                return ToolOutput(text=text, origins=(Provenance("person", f"people on {place.channel}"),))
        except ActionFailed as error:
            raise ToolError(str(error)) from None
        source = tool_message(context.turn_id, context.call_id)
        if action.makes in (Action.EDIT, Action.DELETE):
            own = await self._given.conversations.reads.own_message(place, asked.message_id)
            if own is None:
                raise ToolError(f"{asked.message_id!r} is no message of yours there, or none that is still known.")
            place = own
        elif action.name == THREAD_CREATE.name:
            if place.thread:
                raise ToolError("That is a thread already; use thread_reply.")
            place = replace(place, thread=asked.message_id)
        guests = self._wishing(place)
        blocks = await self._blocks(source, action, asked, channel, on_wish(guests) if guests else "")
        session_key = (
            self._given.conversations.session_of(replace(origin, place=place)) if action.makes in _SENDS else ""
        )
        told = ToldOf("" if session_key == self._turn.session_key else session_key, context.bears())
        if not await self._send(place, blocks, told, FOR_GUESTS if guests else 0):
            raise ToolError(f"One turn sends at most {FOR_GUESTS} messages to others for people who are no owners.")
        return await self._outcome(source, action)

    async def _target(self, action: ToolAction, asked: Arguments, as_guest: bool) -> Origin:
        """Return the conversation that a call acts in. Raises ToolError if it may not act there, or ActionFailed."""
        here = self._turn.place
        origin = await self._found(asked.to, as_guest) if asked.to else Origin(place=here)
        place = origin.place
        if place.kind in LOCAL:
            raise ToolError("Nothing can be sent into this conversation; name another one with `to`.")
        if action.name in LOOKS and not self._sees(place):
            raise ToolError("Other people read along here, so look only at this conversation and its threads.")
        if action.makes not in _SENDS and action.name not in LOOKS and self._wishing(place):
            raise ToolError("In other conversations you can only send.")
        account = self._given.conversations.accounts.like(place)
        names = [one.name for one in account.section.tool_actions()] if account else []
        if action.name not in names:
            raise ToolError(f"{action.name} cannot be done there, only: {', '.join(names) or 'nothing'}.")
        return replace(origin, place=replace(place, thread=asked.thread)) if asked.thread else origin

    async def _found(self, to: str, as_guest: bool) -> Origin:
        """Return the conversation that `to` names. Raises ToolError if none is found or allowed, or ActionFailed."""
        given, here = self._given, self._turn.place
        account, wanted = given.conversations.labelled(to)
        account = account or given.conversations.accounts.like(here)
        if account is None or not isinstance(account.channel, Channel):
            raise ToolError(NAME_CHANNEL)
        own = is_of(account.channel, here)
        if own and wanted == here.chat:
            return Origin(place=replace(here, thread=""))
        if as_guest:
            raise ToolError("Only this conversation can be written to: whoever asks is no owner of this bot.")
        if given.reach == "conversation" or (given.reach == "channel" and not own):
            places = "this conversation" if given.reach == "conversation" else f"conversations on {here.channel}"
            raise ToolError(f"Only {places} can be written to; the configuration says so.")
        return await given.conversations.find(account.channel, wanted)

    def _asking(self, place: Place) -> str:
        """Return the id of the newest message of the turn, for actions that name no message. Raises ToolError."""
        newest = self._turn.messages[-1].origin
        if chat_of(place) != chat_of(newest.place) or not newest.message_id:
            raise ToolError("Say which message is meant, with message_id.")
        return newest.message_id

    def _sees(self, place: Place) -> bool:
        """Return whether words of a conversation may be shown in that of the turn."""
        if chat_of(place) == chat_of(self._turn.place):
            return True
        by_owners = not self._wishing(place)
        return self._given.rooms.of(self._turn.session_key).sees_all(self._turn.place, by_owners=by_owners)

    def _wishing(self, place: Place) -> Sequence[Origin]:
        """Return the people, no owners, on whose wish the call acts in another chat; empty in the chat of the turn."""
        if chat_of(place) == chat_of(self._turn.place):
            return ()
        return [one.origin for one in self._turn.messages if not self._given.conversations.people.is_owner(one)]

    async def _blocks(
        self, source: Source, action: ToolAction, asked: Arguments, channel: Channel, wish: str
    ) -> Sequence[Planned]:
        """Return the deliveries of an action. wish: on whose wish it is done, put above the text. Raises ToolError."""
        assert action.makes is not None
        bare = Planned(source=source, body="", nonce=self._given.nonce(), action=action.makes)
        if action.makes is Action.REACT:
            return (replace(bare, body=asked.emoji, target=asked.message_id),)
        if action.makes is Action.DELETE:
            return (replace(bare, target=asked.message_id),)
        text = "\n\n".join(filter(None, (wish, spoken(asked.text))))
        if action.makes is Action.FILE and len(text) > _CAPTION:
            raise ToolError(f"A caption has at most {_CAPTION} characters; send the rest with send.")
        shown = self._given.outbox.notice(source, text, channel, _buttons(asked), ours=False) if text else ()
        if text and not shown:
            raise ToolError("That text shows nothing.")
        first, *more = shown or (bare,)
        if wish and more:
            raise ToolError("That is too long for one message, which is what others are sent.")
        if action.makes is Action.EDIT:
            if more:
                raise ToolError("That is too long for one message, which is what an edit changes.")
            return (replace(first, action=Action.EDIT, target=asked.message_id),)
        if action.makes is Action.FILE:
            file = await asyncio.to_thread(
                outgoing_file,
                self._given.rooms.inside(self._turn.session_key).workspace,
                asked.path,
                channel.capabilities.file_bytes,
            )
            return (replace(first, action=Action.FILE, file=file), *more)
        return (replace(first, reply_to=asked.message_id if action.name == REPLY.name else ""), *more)

    async def _outcome(self, source: Source, action: ToolAction) -> ToolOutput:
        """Wait a while for the deliveries of a call; returns their state. Raises ToolError if they were not sent."""
        fate = await self._given.outbox.outcome(source, PATIENCE)
        if fate.state == "not sent":
            raise ToolError(f"Not done: {fate.reason or 'it was given up'}.")
        if fate.state == "sent":
            ids = f"Sent, id {', '.join(fate.ids)}." if fate.ids else "Sent."
            return ToolOutput(text="Done." if action.makes in IDEMPOTENT else ids)
        when = "will be done as soon as it can" if fate.state == "planned" else "may have been done, which nobody knows"
        return ToolOutput(text=f"It {when}. Do not repeat it.")


@cache
def _told(actions: tuple[ToolAction, ...]) -> tuple[str, type[Parameters]]:
    """Return the description and the parameters of a tool with these actions."""
    lines = (
        f"- {one.name} {' '.join((*one.needs, *(f'[{name}]' for name in one.takes)))}: {one.does}" for one in actions
    )
    used = {name for one in actions for name in (*one.needs, *one.takes)}
    fields: dict[str, Any] = {"action": (Literal[tuple(one.name for one in actions)], Field())}
    fields |= {name: (info.annotation, info) for name, info in Arguments.model_fields.items() if name in used}
    return "\n".join((_DESCRIPTION, *lines)), create_model("MessageParameters", __base__=Parameters, **fields)


def _checked(action: ToolAction, fields: Mapping[str, Any]) -> Arguments:
    """Return the arguments of an action; blank ones count as not given. Raises ToolError when some are wrong."""
    takes = (*action.needs, *action.takes)
    given = {
        name: value.strip() and well_formed(value) if isinstance(value, str) else value
        for name, value in fields.items()
    }
    given = {name: value for name, value in given.items() if value != Arguments.model_fields[name].default}
    if wrong := [name for name in given if name not in takes]:
        raise ToolError(f"{action.name} takes no {', '.join(wrong)}; it takes {', '.join(takes)}.")
    if missing := [name for name in action.needs if name not in given]:
        raise ToolError(f"{action.name} needs {', '.join(missing)}.")
    asked = Arguments.model_validate(given)
    if is_silent(asked.text):
        raise ToolError("That is the sign for saying nothing, no message: then do not call this.")
    return asked


def _buttons(asked: Arguments) -> tuple[Button, ...]:
    """Return the buttons of a message. A click says the label, which must be no command. Raises ToolError."""
    labels = [label.strip() for label in asked.buttons]
    if len(set(labels)) < len(labels) or not all(0 < len(label.encode()) <= _LABEL for label in labels):
        raise ToolError(f"Labels of buttons differ, and have 1 to {_LABEL} bytes.")
    if any(label.startswith(COMMAND_SIGNS) for label in labels):
        raise ToolError("The label of a button is no command.")
    return tuple(button(label, label) for label in labels)
