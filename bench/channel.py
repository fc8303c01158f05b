"""A channel inside the process: hands questions to the service and notes when the answer is asked to be sent."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from bench.model import Asked, question
from bench.model_server import LAST_WORD
from channels.actions import ActionFailed, Arguments
from channels.base import Capabilities, Health, HealthState, NotDownloaded, Sink
from channels.message import Attachment, ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Delivery, SendResult, Sent


class BenchChannel:
    """Implements `channels.base.Channel`; it has Telegram's name, so that Telegram's rules of access are passed."""

    name = "telegram"
    account = "1"
    capabilities = Capabilities(
        block_chars=4096,
        typing_seconds=4.0,
        rules="Your answer is shown in a chat. Write plain Markdown.",
    )

    def __init__(self) -> None:
        self._sink: Sink | None = None
        self._waiting: dict[str, asyncio.Future[float]] = {}

    async def ask(self, session: int, extra: str = "") -> Asked:
        """Write a message and wait until its answer would be sent; one at a time per session."""
        number, text = question(extra)
        chat = str(session)
        answered = self._waiting[chat] = asyncio.get_running_loop().create_future()
        assert self._sink is not None
        sent = time.monotonic()
        message = InboundMessage(
            origin=Origin(
                place=Place(channel=self.name, account=self.account, chat=chat, kind=ChatKind.DIRECT),
                sender=chat,
                sender_name="Bench",
                message_id=str(number),
            ),
            event_key=f"m:{number}",
            kind=InboundKind.MESSAGE,
            text=text,
            sent_at=time.time_ns() // 1_000_000,
        )
        await self._sink.accept([message], None)
        return Asked(number, sent, await answered)

    async def send(self, delivery: Delivery) -> SendResult:
        """The platform call: when it brings the end of an answer, the question is answered."""
        at = time.monotonic()
        waiting = self._waiting.get(delivery.place.chat)
        if LAST_WORD in delivery.body and waiting is not None and not waiting.done():
            waiting.set_result(at)
        return Sent(str(delivery.delivery_id))

    async def settle(self, delivery: Delivery) -> SendResult:
        """See Channel. It takes everything, so what it was sent arrived."""
        return Sent()

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """See Channel. There are no files."""
        raise NotDownloaded("there are no files")
        yield b""

    async def start(self, sink: Sink) -> None:
        """See Channel."""
        self._sink = sink

    async def stop_intake(self) -> None:
        """See Channel."""

    async def close(self) -> None:
        """See Channel."""

    def render(self, text: str) -> Sequence[str]:
        """See Channel."""
        return (text,)

    def pass_limit(self, place: Place) -> float:
        """See Channel; no platform is behind this one."""
        return 0.0

    async def react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """See Channel; it shows none."""

    async def frame(self, place: Place, target: str, body: str) -> float:
        """See Channel."""
        return 60.0

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """There is nothing else to do."""
        raise ActionFailed(f"{name} is not possible here")

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        """Nobody is known."""
        return ()

    async def working(self, place: Place) -> None:
        """See Channel."""

    def health(self) -> Health:
        """See Channel."""
        return Health(HealthState.READY, 0)
