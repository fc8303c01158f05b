"""The adapter: looks into `in` each second, and writes into `out`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

from channels.actions import ActionFailed, Arguments
from channels.base import Capabilities, Health, HealthState, NotAccepted, NotDownloaded, Sink, Times
from channels.message import Attachment, ChatKind, InboundKind, InboundMessage, Origin, Place, message_key
from channels.outgoing import Delivery, SendResult, Sent, Unknown
from hark_example.mailbox.settings import Mailbox

PAUSE = 1.0


class MailboxChannel:
    """Everybody who can write into the folder is one person, `somebody`."""

    name = "mailbox"
    capabilities = Capabilities(block_chars=4000, typing_seconds=0, rules="Your words become text files.")

    def __init__(self, folder: Path, times: Times) -> None:
        self.account = folder.name  # a platform would be asked who the bot is, in a task
        self._in, self._out, self._times = folder / "in", folder / "out", times
        self._health = Health(HealthState.STARTING, times.now())
        self._task: asyncio.Task[None] | None = None

    async def start(self, sink: Sink) -> None:
        """See Surface."""
        sink.can_send(self.name, self.account)
        self._task = asyncio.create_task(self._receive(sink), name="mailbox")

    async def _receive(self, sink: Sink) -> None:
        while True:
            state, detail = HealthState.READY, ""
            try:
                for file, text in await asyncio.to_thread(self._read):
                    await sink.accept([self._message(file.name, text)], None)
                    file.unlink()  # only now; a file that is read twice has the same event key
            except NotAccepted:
                pass  # the store cannot write; the file stays
            except OSError as error:
                state, detail = HealthState.DOWN, f"the folder cannot be read: {error.strerror}"
            if (state, detail) != (self._health.state, self._health.detail):
                self._health = Health(state, self._times.now(), detail)
            await self._times.sleep(PAUSE)

    def _read(self) -> list[tuple[Path, str]]:
        self._in.mkdir(parents=True, exist_ok=True)
        self._out.mkdir(parents=True, exist_ok=True)
        return [(file, file.read_text("utf-8", "replace")) for file in sorted(self._in.glob("*.txt"))]

    def _message(self, name: str, text: str) -> InboundMessage:
        place = Place(channel=self.name, account=self.account, chat="somebody", kind=ChatKind.DIRECT)
        return InboundMessage(
            origin=Origin(place=place, sender="somebody", message_id=name),
            event_key=message_key("somebody", name),
            kind=InboundKind.MESSAGE,
            text=text,
            sent_at=self._times.now(),
        )

    async def stop_intake(self) -> None:
        """See Surface."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def close(self) -> None:
        """See Surface."""
        await self.stop_intake()

    def health(self) -> Health:
        """See Surface."""
        return self._health

    def render(self, text: str) -> Sequence[str]:
        """See Channel: Markdown is shown as it is."""
        return (text,)

    def pass_limit(self, place: Place) -> float:
        """See Channel: there is none."""
        return 0.0

    async def send(self, delivery: Delivery) -> SendResult:
        """See Channel. The name is that of the delivery, so that sending it again would change nothing."""
        try:
            await asyncio.to_thread(self._write, f"{delivery.delivery_id}.txt", delivery.body)
        except OSError as error:
            return Unknown(error.strerror or "the disk")
        return Sent()

    def _write(self, name: str, text: str) -> None:
        fresh = self._out / f".{name}"
        fresh.write_text(text, "utf-8")
        fresh.replace(self._out / name)

    async def settle(self, delivery: Delivery) -> SendResult:
        """See Channel."""
        return await self.send(delivery)

    async def working(self, place: Place) -> None:
        """See Channel: there is no typing sign."""

    async def react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """See Channel: there are no reactions."""

    async def frame(self, place: Place, target: str, body: str) -> float:
        """See Channel: there are no previews."""
        return 60.0

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """See Channel."""
        raise ActionFailed("there is nothing else to do")

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        """See Channel."""
        return ()

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """See Channel."""
        raise NotDownloaded("there are no files")
        yield b""


def build(settings: Mailbox, times: Times) -> MailboxChannel:
    """Make the adapter of an account."""
    return MailboxChannel(Path(settings.folder), times)
