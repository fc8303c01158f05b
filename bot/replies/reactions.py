"""The reaction of the bot to the message that it answers, which says what it is doing.

The first reaction says that a message was seen; it is planned with it, and taken away with the end of its turn. Where
`ack.states` is configured it changes meanwhile. These changes are not persisted, like the typing sign: after a crash
the reaction is a little out of date until the turn goes on. Those that stay behind a turn (done, error) are persisted
with its end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal, get_args

from channels.base import Channel
from channels.message import ChatKind, InboundKind, InboundMessage, Place
from channels.outgoing import Action, Planned
from channels.settings import Acknowledgement
from channels.sources import acknowledgement, sentence

# What a run does while it goes on, by the names of `ack.states`.
Working = Literal["thinking", "tool", "waiting", "compacting"]
_WORKING: tuple[Working, ...] = get_args(Working)
# Seconds between two changes; what lies between them is not shown.
_PAUSE = 1.5


def acknowledge(message: InboundMessage, wanted: Acknowledgement) -> tuple[Planned, ...]:
    """The reaction that says "seen, I am on it", planned with a message and taken away when its turn ends; none where
    it is not wanted or cannot be."""
    place = message.origin.place
    direct = place.kind is ChatKind.DIRECT
    in_scope = {"direct": direct, "mention": not direct and message.mentioned, "all": True}[wanted.scope]
    target = message.origin.message_id
    emoji = wanted.emoji or ("👀" if wanted.states else "")
    if not emoji or not in_scope or not target or message.kind is not InboundKind.MESSAGE:
        return ()
    source = acknowledgement(place, message.event_key)
    return (Planned(source=source, body=emoji, nonce=0, action=Action.REACT, target=target),)


class Reaction:
    """Changes the reaction to the message that one run answers; nobody waits for it, and failures are ignored.

    seen: the first reaction, which `acknowledge` has made. wanted: has the emojis.
    """

    def __init__(
        self,
        channel: Channel,
        place: Place,
        seen: Planned,
        wanted: Acknowledgement,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._channel, self._place, self._seen, self._sleep = channel, place, seen, sleep
        self._emojis = {name: getattr(wanted.states, name) for name in _WORKING} if wanted.states else {}
        self._last = {name: getattr(wanted.states, name) for name in ("done", "error")} if wanted.states else {}
        self._shown = self._wanted = seen.body
        self._changed, self._calling = asyncio.Event(), asyncio.Lock()
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    def show(self, state: Working) -> None:
        """Show what the run does now, if that has an emoji."""
        self._wanted = self._emojis.get(state) or self._wanted
        self._changed.set()
        if self._task is None and self._wanted != self._shown:
            self._task = asyncio.create_task(self._work(), name="reaction")

    def stop(self) -> None:
        """Change nothing more. A call under way is not cancelled; it ends before the next delivery."""
        self._stopped = True
        if self._task is not None and not self._calling.locked():
            self._task.cancel()

    async def stay(self, state: Working) -> None:
        """Show at once what the run ends with for now, such as that it waits for a person."""
        self.stop()
        if (emoji := self._emojis.get(state, "")) and emoji != self._shown:
            await self._channel.react(self._place, self._seen.target, emoji, self._shown)

    def last(self, *, failed: bool) -> tuple[Planned, ...]:
        """Return the reaction that stays when the turn has ended; none where none is wanted."""
        emoji = self._last.get("error" if failed else "done", "")
        source = sentence(f"end:{self._seen.source.key}")
        return (replace(self._seen, source=source, body=emoji),) if emoji else ()

    async def _work(self) -> None:
        while not self._stopped:
            await self._changed.wait()
            self._changed.clear()
            if (emoji := self._wanted) != self._shown:
                async with self._calling:
                    await self._channel.react(self._place, self._seen.target, emoji, self._shown)
                    self._shown = emoji
                await self._sleep(_PAUSE)
