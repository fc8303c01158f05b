"""A strict Slack on a loopback port, written from docs.slack.dev: Web API, Socket Mode, requests to an app's url.

`async with SlackServer() as slack:` serves `slack.base_url` + method, the WebSocket that apps.connections.open
names, uploads, downloads and response_urls. People act through the methods of slack_people and slack_delivery;
faults are ordered with `fail_next`, `hold_next` and `fall_silent`, or on `slack.sockets`. Time that Slack measures
passes in `advance` only. When the test ends the server checks, unasked, that its client broke no rule and that
every fault happened.

Not modelled: methods, arguments and blocks that Hark never sends (they are refused or a violation until somebody adds
them), OAuth, several workspaces and enterprise grids, user tokens, custom emoji, pictures of link previews, files that
are edited or deleted, membership changes by the app, the lower limits of conversations.history for apps outside the
marketplace and the splitting of texts past 4,000 characters. Events keep their order unless a test orders otherwise
with `pause` and `resume`. Texts past
40,000 characters are refused, where Slack may cut them. From what clients report, not from the documentation: a
thread's parent comes on every page, pages of history after `oldest` go forward, app_mention comes again with each
edit and not with files, an acknowledgement on another connection does not count. Where reports differ, World has a
switch.

    async with SlackServer() as slack:
        room = slack.channel("general", ALICE)       # the app is a member; `dm`, `group_dm` for the others
        … connect a client with slack.base_url, slack.bot_token, slack.app_token …
        await slack.wait_connected()                 # or `await slack.use_url(url)` for HTTP mode
        said = slack.mention(room, ALICE, "help")    # say, edit, delete, react, slash, click, join, leave …
        await slack.wait_text("Here is")             # slack.sent, texts, messages, thread
        slack.fail_next("chat.postMessage", "ratelimited", retry_after=2)
        slack.advance(3)                             # what is not acknowledged comes again
"""

from typing import Any

from aiohttp import web

from tests.standins import slack_shapes as shapes
from tests.standins.faults import Fault, Faults
from tests.standins.platform_server import PlatformServer
from tests.standins.slack_arguments import METHODS
from tests.standins.slack_faults import OTHER_CALLS
from tests.standins.slack_http import Requests
from tests.standins.slack_ledger import Call, Json, Refusal, Rule, Violation, too_many
from tests.standins.slack_reading import on_top
from tests.standins.slack_shapes import Room
from tests.standins.slack_web import Serving
from tests.standins.slack_world import ts_of
from tests.watch import PATIENCE


class SlackServer(PlatformServer, Serving):
    """See the module. `limits` is off until a test sets a `RateLimits`; `sockets` are the open connections."""

    platform = "Slack"

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.signing_secret = shapes.SIGNING_SECRET
        self._runner: web.AppRunner | None = None
        self.serve(Faults(Rule.FAULT_NOT_FIRED))

    # Life

    async def start(self) -> None:
        """Listen; after a stop on the same port as before, with the same state."""
        self._closing = False
        self._runner = web.AppRunner(self.application(), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening; calls that are held go on, connections end."""
        self._closing = True
        self.faults.release_all()
        if isinstance(self.transport, Requests):
            await self.transport.close()
            self.transport = self.sockets
        await self.sockets.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def use_url(self, url: str) -> Requests:
        """HTTP mode from here on: verify the app's url and send everything there."""
        if isinstance(self.transport, Requests):
            await self.transport.close()
        requests = Requests(self, url)
        self.transport = requests
        if not await requests.verify():
            raise AssertionError(f"{url} did not answer the challenge of url_verification")
        return requests

    @property
    def base_url(self) -> str:
        """The method follows."""
        return f"{self.origin}/api/"

    # What tests read

    @property
    def calls(self) -> list[Call]:
        """Every call, in order."""
        return self.ledger.calls

    def calls_of(self, method: str) -> list[Json]:
        """The arguments of every call of a method, refused ones too."""
        return [call.args for call in self.ledger.calls if call.method == method]

    def texts(self, room: Room | str | None = None, thread_ts: str | None = None) -> list[str]:
        """What the app said in order, as people read it: of one conversation or thread, or of all."""
        channel = room.id if isinstance(room, Room) else room
        said = [one for one in self.sent if one.method in ("chat.postMessage", "response_url", "ack")]
        return [
            one.shown
            for one in said
            if channel in (None, one.channel) and (thread_ts is None or one.thread_ts == thread_ts)
        ]

    def messages(self, room: Room | str) -> list[Json]:
        """What stands in a conversation, oldest first, without replies but those that were sent there too."""
        channel = room.id if isinstance(room, Room) else room
        return [dict(one) for one in sorted(self.kept[channel].values(), key=ts_of) if on_top(one)]

    def thread(self, room: Room | str, ts: str) -> list[Json]:
        """What stands in a thread, the parent first."""
        channel = room.id if isinstance(room, Room) else room
        return [dict(one) for one in [self.kept[channel][ts], *self.replies(channel, ts)]]

    def left_open(self) -> list[Violation]:
        """Lines below threads that say what the app does, which nothing has taken away."""
        return [Violation(Rule.LATE_STATUS, f"{channel} {ts}: {line}") for (channel, ts), line in self.statuses.items()]

    async def wait_connected(self, count: int = 1, seconds: float = PATIENCE) -> None:
        """Wait until that many connections of Socket Mode were greeted."""
        await self.wait_for(lambda: len(self.sockets.open) >= count, f"{count} connections", seconds)

    # Faults

    def fail_next(
        self,
        method: str,
        error: str | None = None,
        *,
        status: int = 200,
        retry_after: int = 1,
        drop: bool = False,
        times: int = 1,
        after_apply: bool = False,
        channel: str | None = None,
    ) -> Fault:
        """Answer the next calls of `method` with an error, a status or a broken connection instead of obeying.

        `method` may also be "connect" (the WebSocket), "upload", "download" or "response_url". "ratelimited" is a
        429 with `retry_after`, a status from 500 on a page for people. With `after_apply` the call is carried out
        first, so that its outcome is unknown to the client. aiohttp itself repeats a GET whose kept connection broke:
        order two of those.
        """
        more: Json = {"needed": "chat:write", "provided": "commands"} if error == "missing_scope" else {}
        answer_: Refusal | int = Refusal(error or "internal_error", status=status, **more)
        if error == "ratelimited" or status == 429:
            answer_ = too_many(retry_after)
        elif status >= 500:
            answer_ = status
        return self.faults.order(
            self.named(method), answer=answer_, drop=drop, times=times, after_apply=after_apply, place=channel
        )

    def named(self, name: str) -> str:
        if name not in (*METHODS, *OTHER_CALLS):
            raise ValueError(f"{name} is no method of this server")
        return name
