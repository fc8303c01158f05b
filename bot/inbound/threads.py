"""What a thread is about, for when the bot is asked in the midst of it: the message that it hangs on, and what was said
last. Read from the platform once, before the first message there that is for the bot; without it the model would be
asked "what does that mean?" alone. It stands in front of that message as what was overheard does, and is no request.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from agent.message import cleaned
from bot import wording
from channels.base import NotReadable, Threaded
from channels.message import InboundKind, InboundMessage, Origin, Place

log = structlog.get_logger()

# Messages of a thread that are read besides the one that it hangs on.
LAST = 20
# Seconds for which whoever asks waits for that at the most.
PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Threads:
    """may_show: whether a model may be shown what somebody says in a place."""

    may_show: Callable[[Origin], bool]

    async def before(self, channel: Threaded, place: Place, message_id: str) -> list[InboundMessage]:
        """What was said in a thread before a message; nothing where the platform does not tell it, or not in time."""
        where = {"channel": place.channel, "chat": place.chat, "thread": place.thread}
        try:
            async with asyncio.timeout(PATIENCE):
                found = await channel.around(place, message_id, LAST)
        except (NotReadable, TimeoutError) as error:
            log.info("what was said in a thread before is not known", **where, reason=str(error) or "it took too long")
            return []
        except Exception:  # a fault of the adapter
            log.exception("channel failed", **where)
            return []
        read = (cleaned(one) for one in found if isinstance(one, InboundMessage))
        return [self._shown(one) for one in read if one.kind is InboundKind.MESSAGE]

    def _shown(self, message: InboundMessage) -> InboundMessage:
        """A line as the model may see it: of who is not let in, that there was one."""
        if not self.may_show(message.origin):
            origin = replace(message.origin, sender_name="")
            return replace(message, text=wording.NOT_SHOWN, origin=origin, attachments=(), forwarded=None)
        return message
