"""The Slack channel: receives with `receive`, renders with `render`, and makes the calls that the outbox asks for.

Imported only when an account of the channel is built, because it imports the platform's libraries.
"""

import asyncio
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

from channels.actions import Arguments
from channels.adapter import Adapter
from channels.base import Capabilities, NotDownloaded, NotReadable, Page, Sink, Times, rules_of
from channels.failures import ApiError, Trouble
from channels.message import Attachment, Incoming, Origin, Place
from channels.outgoing import Action, Delivery, Elsewhere, NotSent, Refused, SendResult, Sent, Unknown
from channels.slack import history, render
from channels.slack.actions import Workspace
from channels.slack.api import NEVER, Api, flood, is_slack
from channels.slack.events import read_message, unread
from channels.slack.known import Known
from channels.slack.receive import SlackReceiver
from channels.slack.settings import SlackAccount

_RULES = rules_of(__package__)
# After so many sends a message that is never found is given up.
_MOST_SENDS = 5
_WORKING = "is thinking…"
# The calls of chat.update a minute in the workspace after which no frame is shown. Slack takes about 50.
_MOST_UPDATES = 40
# The key, beside those of chats, that is held while Slack takes no more frames.
_FRAMES = "chat.update"
# Seconds between two frames, and after one that failed.
_FRAME_PAUSE, _NO_FRAMES = 1.5, 60.0


class SlackChannel(Adapter):
    """One bot; see `channels.base.Channel`, `History` and `Threaded`."""

    name = "slack"
    # Slack removes the typing sign after two minutes, and with each message.
    capabilities = Capabilities(
        block_chars=render.MAX_UNITS - 400,
        typing_seconds=20.0,
        rules=_RULES,
        actions=render.ACTIONS,
        file_bytes=100 * 1024 * 1024,
        commands_apart=True,
        commands=("/hark ", "/hark "),
    )

    def __init__(self, section: SlackAccount, times: Times) -> None:
        self._section = section
        # The times of the last calls of chat.update, by frames and by deliveries.
        self._updates: deque[float] = deque(maxlen=_MOST_UPDATES)
        self._no_status: set[str] = set()
        self._response_urls = render.ResponseUrls()
        self._known = Known()
        self._api = Api(section)
        self._workspace = Workspace(self._api, self._known, times)
        receiver = SlackReceiver(self.name, self._api, self._known, section, times)
        super().__init__(receiver, self._api.close, section, times)
        self._bot = receiver

    async def start(self, sink: Sink) -> None:
        """See `channels.base.Channel`."""
        self._api.open()
        await super().start(sink)
        self._tasks.append(asyncio.create_task(self._known.ask(self._api, self._times.sleep), name="slack-names"))

    def render(self, text: str) -> Sequence[str]:
        """See `channels.base.Channel`."""
        return render.bodies(text)

    async def settle(self, delivery: Delivery) -> SendResult:
        """Look for the message in the history. A file, or a message that only one person saw, cannot be found there."""
        if delivery.action is not Action.SEND:
            return Unknown("Slack does not tell whether a file arrived; it is not sent again")
        if delivery.attempts >= _MOST_SENDS:
            return Unknown(f"sent {delivery.attempts} times, and never found")
        absent, pauses = False, self._section.pauses()
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
            await self._times.sleep(self._section.settle_pause)

    async def frame(self, place: Place, target: str, body: str) -> float:
        """See `channels.base.Channel`. It takes the lock of sends, so that it never arrives after a later send."""
        now = self._times.monotonic()
        used_up = self._updates[0] + 60.0 - now if len(self._updates) == _MOST_UPDATES else 0.0
        wait = max(used_up, self._limits.held(_FRAMES), self._limits.held(place.chat))
        if not target or wait > 0 or self._lock(place).locked():
            return wait or _FRAME_PAUSE
        self._updates.append(now)
        error = await self._best_effort(
            place, self._api.call("chat.update", render.edit_of(place, target, json.loads(body)))
        )
        if error is None:
            return _FRAME_PAUSE
        self._limits.hold(_FRAMES, error.retry_after)
        return error.retry_after or _NO_FRAMES

    async def perform(self, name: str, place: Place, arguments: Arguments) -> str:
        """See `channels/actions.py`."""
        return await self._workspace.perform(name, place, arguments)

    async def find(self, wanted: str) -> Origin | Sequence[str]:
        """See `channels.base.Channel`. Raises ActionFailed."""
        return await self._workspace.find(wanted)

    async def working(self, place: Place) -> None:
        """Show in a thread that the bot is thinking; outside of threads Slack has no typing sign."""
        held = self._lock(place).locked() or self._limits.held(place.chat) > 0
        if not place.thread or place.chat in self._no_status or held:
            return
        arguments = {"channel_id": place.chat, "thread_ts": place.thread, "status": _WORKING}
        error = await self._best_effort(place, self._api.call("assistant.threads.setStatus", arguments))
        if error is not None and error.trouble in NEVER:
            self._no_status.add(place.chat)

    async def download(self, attachment: Attachment) -> AsyncIterator[bytes]:
        """See `channels.base.Channel`."""
        try:
            async for piece in self._api.file(attachment.ref):
                yield piece
        except ApiError as error:
            raise NotDownloaded(f"the file cannot be had from Slack: {error.reason}") from None

    async def history(self, place: Place, after: str, before: str, most: int) -> Page:
        """See `channels.base.History`."""
        try:
            found, more = await history.said(self._api, place, after, before, most)
        except ApiError as error:
            raise self._not_readable(error) from None
        batch = [item for message in found for item in self._read(history.read_as_event(message, place))]
        self._bot.found_in_history(batch)
        return Page(batch, str(found[-1]["ts"]) if found else "", more)

    async def around(self, place: Place, before: str, most: int) -> Sequence[Incoming]:
        """See `channels.base.Threaded`."""
        try:
            found = await history.around(self._api, place, before, most)
        except ApiError as error:
            raise self._not_readable(error) from None
        return [item for message in found for item in self._read(history.read_as_event(message, place), mine=True)]

    def _not_readable(self, error: ApiError) -> NotReadable:
        again = error.retry_after or self._section.retry_most
        return NotReadable(error.reason, None if error.trouble in NEVER else again)

    def position(self, at: int) -> str:
        """See `channels.base.History`."""
        return history.position(at)

    def _read(self, event: dict[str, Any], *, mine: bool = False) -> list[Incoming]:
        try:
            return read_message(event, self._known, mine)
        except Exception as error:
            return [unread(event, self._known, error)]

    async def _carry_out(self, delivery: Delivery) -> str | Elsewhere:
        """See `Adapter._carry_out`."""
        if delivery.action is Action.FILE:
            await self._upload(delivery)
            return ""
        if delivery.action is Action.REACT and not delivery.body:
            await self._take_reactions_back(delivery)
            return delivery.target
        if delivery.respond and delivery.action is Action.SEND:
            return await self._respond(delivery)
        if delivery.action is Action.EDIT:
            self._updates.append(self._times.monotonic())
        method, arguments = render.call_of(delivery)
        answer = await self._api.call(method, arguments)
        return str(answer.get("ts") or delivery.target)

    async def _react(self, place: Place, target: str, emoji: str, before: str) -> None:
        """See `Adapter._react`."""
        for method, one in (("reactions.add", emoji), ("reactions.remove", before)):
            await self._api.call(method, render.reaction(place, target, one))

    async def _respond(self, delivery: Delivery) -> str | Elsewhere:
        """Answer only to the person who typed a command or pressed a button.

        That is at the response URL, and in their direct messages when it takes no more.

        Nobody else saw the command, and it may have been typed in a conversation that the bot is not in.
        """
        address, person = self._response_urls.good(delivery.respond, self._times.now())
        if is_slack(address, self._section.base_url):
            answer = {**render.shown(delivery), **render.in_thread(delivery.place), "response_type": "ephemeral"}
            async with self._api.request("POST", address, json={**answer, "replace_original": False}) as response:
                if response.status == 429:
                    raise flood(response.headers)
                if response.status >= 500:
                    raise ApiError(Trouble.FAILED, f"status {response.status}")
                if response.status == 200:
                    self._response_urls.used(address)
                    return ""
        try:
            opened = await self._api.call("conversations.open", {"users": person})
        except ApiError as error:
            if error.trouble in (Trouble.FAILED, Trouble.UNKNOWN):  # it is invisible, so it may be retried
                raise ApiError(Trouble.NETWORK, error.reason) from None
            raise
        return Elsewhere(self._known.place(str(opened["channel"]["id"]), "im"))

    async def _take_reactions_back(self, delivery: Delivery) -> None:
        place = {"channel": delivery.place.chat, "timestamp": delivery.target}
        message = await history.one(self._api, delivery.place, delivery.target)
        for reaction in message.get("reactions") or ():
            if self.account in reaction.get("users", ()):
                await self._api.call("reactions.remove", {**place, "name": reaction["name"]})

    async def _upload(self, delivery: Delivery) -> None:
        """Upload a file and post it. Only the last of the calls is visible, so only its outcome can be unknown."""
        file = delivery.file
        if file is None:
            raise ValueError("there is no file")
        try:
            with await asyncio.to_thread(file.open) as content:
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
        arguments |= {"channel_id": delivery.place.chat, **render.in_thread(delivery.place)}
        if caption.get("text"):
            arguments["initial_comment"] = caption["text"]
        await self._api.call("files.completeUploadExternal", arguments)

    def _result(self, error: ApiError, delivery: Delivery) -> SendResult:
        match error.trouble:
            case Trouble.REFUSED if error.code in render.DONE_BEFORE.get(delivery.action, ()):
                return Sent(delivery.target)
            case Trouble.REFUSED:
                plain = render.plain_body(delivery.body) if error.code in render.WRONG_FORM else None
                if plain is not None:
                    return NotSent(0.0, error.reason, plain)
            case Trouble.SCOPE if delivery.action is not Action.SEND:
                return Refused(error.reason)
        return super()._result(error, delivery)


def build(settings: SlackAccount, times: Times) -> SlackChannel:
    """The adapter of an account."""
    return SlackChannel(settings, times)
