"""The Slack channel: receives by `receive`, renders by `render`, and makes the calls the outbox asks for.

Calls into one place are made one after the other, so that a sign of work never comes behind the message that follows
it. `bot/wiring` makes one per account and imports this module only then, because it imports the libraries.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

from channels.actions import ActionFailed, Arguments
from channels.base import Capabilities, Health, NotDownloaded, NotReadable, Page, Sink, Times
from channels.failures import ApiError, Trouble, outcome
from channels.limits import RateLimits
from channels.message import Attachment, ChatKind, Incoming, Place
from channels.outgoing import Action, Delivery, NotSent, Refused, SendResult, Sent, Unknown
from channels.slack import history
from channels.slack.api import NEVER, Api, flood
from channels.slack.calls import ACTIONS, call_of, done_before, form_refused, in_thread, shown
from channels.slack.download import is_slack, pieces
from channels.slack.events import read_message, unread
from channels.slack.known import Known
from channels.slack.receive import Receiver
from channels.slack.render import MAX_UNITS, bodies, plain_body
from channels.slack.settings import SlackSettings

_RULES = """\
The conversation is on Slack. Write Markdown: bold, italic, strikethrough, inline code, fenced code, links, quotes,
lists and task lists are shown, headings as bold lines. A table becomes fixed-width text where no line of it has more
than 40 characters, else a list of "header: value". Formulas are shown as their LaTeX source, images as links, footnotes
and most HTML as they are written; spoilers are not hidden. Mentions call nobody. Be brief."""
_MOST_SENDS = 5
"""Of one message that was never found; more would be of no use."""
_WORKING = "is thinking…"
_MOST_REFUSED = 1024


class SlackChannel:
    """One bot. See `channels.base.Channel` and `History`."""

    name = "slack"
    # Slack takes the sign away after two minutes, and with each message.
    capabilities = Capabilities(
        block_chars=MAX_UNITS - 400, typing_seconds=20.0, rules=_RULES, actions=ACTIONS, file_bytes=100 * 1024 * 1024
    )

    def __init__(self, settings: SlackSettings, times: Times) -> None:
        self._settings = settings
        self._times = times
        self._limits = RateLimits(settings.limits, times.monotonic)
        # Of a place; it lives as long as somebody holds it or waits for it.
        self._calls: WeakValueDictionary[Place, asyncio.Lock] = WeakValueDictionary()
        self._unreached = settings.pauses()
        self._no_status: set[str] = set()
        self._known = Known()
        self._api = Api(settings)
        self._receiver = Receiver(self._api, self._known, settings, times)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def account(self) -> str:
        """The bot's own id as a user; empty until Slack has told it."""
        return self._receiver.me.id if self._receiver.me else ""

    async def start(self, sink: Sink) -> None:
        """Begin to receive; a Slack that is down is retried inside."""
        self._api.open()
        self._tasks = [
            asyncio.create_task(self._receiver.run(sink), name="slack-receive"),
            asyncio.create_task(self._known.ask(self._name_of), name="slack-names"),
        ]

    async def stop_intake(self) -> None:
        """Receive nothing more. What is just being stored is answered, or comes again: both are safe."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            await self._receiver.stop()

    async def close(self) -> None:
        """Stop and close all connections."""
        await self.stop_intake()
        await self._api.close()

    def render(self, text: str) -> Sequence[str]:
        """Markdown to the bodies of messages."""
        return bodies(text)

    def pass_limit(self, place: Place) -> float:
        """Take a place in the limits: 0.0 when granted, else seconds to wait."""
        return self._limits.take(place.chat, place.kind is not ChatKind.DIRECT)

    async def send(self, delivery: Delivery) -> SendResult:
        """Make the call; what became of it is told by where it failed."""
        async with self._calls.setdefault(delivery.place, asyncio.Lock()):
            try:
                sent = await self._carry_out(delivery)
            except ApiError as error:
                return self._result(error, delivery)
            except (ValueError, TypeError, KeyError, OSError) as error:
                return Refused(f"it cannot be sent: {error}")
            finally:
                self._limits.ended(delivery.place.chat)
        self._unreached.failures = 0
        return Sent(sent)

    async def settle(self, delivery: Delivery) -> SendResult:
        """Look whether it stands there. What is no message, or what only one person saw, cannot be looked up."""
        if delivery.action is not Action.SEND:
            return Unknown("Slack does not tell whether a file arrived; it is not sent again")
        if delivery.attempts >= _MOST_SENDS:
            return Unknown(f"sent {delivery.attempts} times, and never found")
        absent, pauses = False, self._settings.pauses()
        while True:
            try:
                found = await history.find(self._api, delivery)
            except ApiError as error:
                if error.trouble in NEVER:
                    return Unknown(f"it cannot be looked up: {error.reason}")
                await self._times.sleep(error.retry_after or pauses.next())
                continue
            if found:
                return Sent(found)
            if delivery.respond:
                return Unknown("an answer that only one person sees cannot be looked up")
            if absent:
                return NotSent(0.0, "it did not arrive; sent again")
            absent = True
            await self._times.sleep(self._settings.settle_pause)

    async def frame(self, place: Place, target: str, body: str) -> float:
        """See `channels.base.Channel`."""
        return 60.0

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """See `channels/actions.py`."""
        raise ActionFailed(f"{name} is not possible here")

    async def find(self, wanted: str) -> Place | Sequence[str]:
        """See `channels.base.Channel`."""
        return ()

    async def working(self, place: Place) -> None:
        """Show below a thread that it is thinking; elsewhere Slack has no such sign."""
        call = self._calls.setdefault(place, asyncio.Lock())
        if not place.thread or place.chat in self._no_status or call.locked() or self._limits.held(place.chat) > 0:
            return
        arguments = {"channel_id": place.chat, "thread_ts": place.thread, "status": _WORKING}
        async with call:
            try:
                async with asyncio.timeout(self._settings.typing_timeout):
                    await self._api.call("assistant.threads.setStatus", arguments)
            except ApiError as error:
                if error.trouble in NEVER and len(self._no_status) < _MOST_REFUSED:
                    self._no_status.add(place.chat)
            except TimeoutError:
                pass

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """The content of a file, from Slack's own hosts alone. Raises NotDownloaded."""
        try:
            async for piece in pieces(self._api, self._settings, attachment):
                yield piece
        except ApiError as error:
            raise NotDownloaded(f"the file cannot be had from Slack: {error.reason}") from None

    async def history(self, place: Place, after: str, before: str, most: int) -> Page:
        """See `channels.base.History`."""
        try:
            found, more = await history.said(self._api, place, after, before, most)
        except ApiError as error:
            again = error.retry_after or self._settings.retry_most
            raise NotReadable(error.reason, None if error.trouble in NEVER else again) from None
        batch = [item for message in found for item in self._read(history.read_as_event(message, place))]
        return Page(batch, str(found[-1]["ts"]) if found else "", more)

    def position(self, at: int) -> str:
        """See `channels.base.History`."""
        return history.position(at)

    def health(self) -> Health:
        """How it stands."""
        return self._receiver.health()

    def _read(self, event: dict[str, Any]) -> list[Incoming]:
        assert self._receiver.me is not None
        try:
            return read_message(event, self._receiver.me, self._known)
        except Exception as error:
            return [unread(event, self._receiver.me, error)]

    async def _name_of(self, person: str) -> str | None:
        while True:
            try:
                user = (await self._api.call("users.info", {"user": person}))["user"]
                profile = user.get("profile") or {}
                return str(profile.get("display_name") or profile.get("real_name") or user.get("name") or "")
            except ApiError as error:
                if error.trouble is not Trouble.FLOOD:
                    return "" if error.trouble in NEVER else None
                await self._times.sleep(error.retry_after)

    async def _carry_out(self, delivery: Delivery) -> str:
        """The id of what is there now. Raises ApiError, and others for what cannot be sent."""
        if delivery.action is Action.FILE:
            await self._upload(delivery)
            return ""
        if delivery.action is Action.REACT and not delivery.body:
            await self._take_reactions_back(delivery)
            return delivery.target
        if delivery.respond and delivery.action is Action.SEND and await self._respond(delivery):
            return ""
        method, arguments = call_of(delivery)
        answer = await self._api.call(method, arguments)
        return str(answer.get("ts") or delivery.target)

    async def _respond(self, delivery: Delivery) -> bool:
        """Answer to the one person who typed a command or pressed a button; False when the address is used up.

        Nobody else saw what they did, and a command may be typed where the bot is not: in a conversation of others.
        """
        if not is_slack(delivery.respond, self._settings.base_url):
            return False
        answer = {**shown(delivery), **in_thread(delivery.place), "response_type": "ephemeral"}
        async with self._api.request("POST", delivery.respond, json={**answer, "replace_original": False}) as response:
            if response.status == 429:
                raise flood(response.headers)
            if response.status >= 500:
                raise ApiError(Trouble.FAILED, f"status {response.status}")
            return response.status == 200

    async def _take_reactions_back(self, delivery: Delivery) -> None:
        place = {"channel": delivery.place.chat, "timestamp": delivery.target}
        message = await history.one(self._api, delivery.place, delivery.target)
        for reaction in message.get("reactions") or ():
            if self.account in reaction.get("users", ()):
                await self._api.call("reactions.remove", {**place, "name": reaction["name"]})

    async def _upload(self, delivery: Delivery) -> None:
        """Nobody sees anything of a file before the last of the three calls; so only that one can be of unknown
        outcome."""
        file = delivery.file
        if file is None:
            raise ValueError("there is no file")
        try:
            with await asyncio.to_thread(open, file.path, "rb") as content:
                asked = {"filename": file.name, "length": os.fstat(content.fileno()).st_size}
                given = await self._api.call("files.getUploadURLExternal", asked)
                async with self._api.request("POST", given["upload_url"], data=content) as response:
                    if response.status != 200:
                        raise ApiError(Trouble.NETWORK, f"the file was not taken: status {response.status}")
        except ApiError as error:
            if error.trouble in (Trouble.FAILED, Trouble.UNKNOWN):
                raise ApiError(Trouble.NETWORK, error.reason) from None
            raise
        caption = json.loads(delivery.body) if delivery.body else {}
        arguments: dict[str, Any] = {"files": [{"id": given["file_id"], "title": file.name}]}
        arguments |= {"channel_id": delivery.place.chat, **in_thread(delivery.place)}
        if caption.get("text"):
            arguments["initial_comment"] = caption["text"]
        await self._api.call("files.completeUploadExternal", arguments)

    def _result(self, error: ApiError, delivery: Delivery) -> SendResult:
        match error.trouble:
            case Trouble.FLOOD:
                self._limits.hold(delivery.place.chat, error.retry_after)
            case Trouble.REFUSED if done_before(delivery.action, error.code):
                return Sent(delivery.target)
            case Trouble.REFUSED:
                plain = plain_body(delivery.body) if form_refused(delivery.action, error.code) else None
                if plain is not None:
                    return NotSent(0.0, error.reason, plain)
            case Trouble.SCOPE if delivery.action is not Action.SEND:
                return Refused(error.reason)
        return outcome(error, self._unreached, self._settings.slow_retry)
