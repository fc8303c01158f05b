"""The section of the configuration for Slack."""

from typing import Annotated, ClassVar, Literal

from channels.actions import THREADED, ToolAction
from channels.failures import Rates
from channels.message import ChatKind, InboundMessage
from channels.section import Id, Secret, Url, looks_like, setting
from channels.settings import (
    AccountSection,
    ChannelSection,
    DirectMessages,
    Groups,
    HttpPath,
    Listen,
    PlatformSection,
    Proof,
)

# The actions of the `message` tool; the module `actions` carries out those that make no delivery.
ACTIONS: tuple[ToolAction, ...] = (
    *THREADED,
    ToolAction("read", "the last messages of a conversation or thread", (), ("to", "thread", "limit", "before")),
    ToolAction("pin", "a message", (), ("to", "message_id")),
    ToolAction("unpin", "a message", (), ("to", "message_id")),
    ToolAction("channel_info", "name, topic and members of a conversation", (), ("to",)),
    ToolAction("user_info", "name, title and time zone of somebody", ("person",)),
)
URL = "https://slack.com/api"
UserId = Annotated[
    Id, looks_like("[UW][A-Z0-9]{2,}", "a Slack member ID, such as U0AB12CD (copied from the person's profile)")
]
ChannelId = Annotated[
    Id, looks_like("[CG][A-Z0-9]{2,}", "a Slack channel ID, such as C0AB12CD (at the end of the channel's details)")
]


class SlackListen(Listen):
    """Where requests of Slack are taken."""

    path: HttpPath = setting("/slack/events", "The path of the Request URLs; takes all kinds of requests.")


class SlackAccount(AccountSection):
    """One bot. Times are seconds.

    ping_interval: how often a WebSocket that says nothing is pinged; half as much later it counts as gone.
    settle_pause: between two looks for a message whose outcome is unknown. lag_warning: what the event loop may be late
    before the log says so. silence: after how long without a request mode http has histories read. on_its_way: how old
    a message is that ought to have come by then.
    """

    identity: ClassVar[str] = "bot_token"
    secrets: ClassVar = {
        "bot_token": (r"xoxb-\S+", "the bot token, xoxb-…; OAuth & Permissions on the app's page has it"),
        "app_token": (
            r"xapp-\S+",
            "an app-level token, xapp-…, with connections:write (mode socket); Basic Information on its page makes it",
        ),
        "signing_secret": (r"\S+", "the signing secret (mode http); Basic Information on the app's page has it"),
    }
    offered: ClassVar[tuple[ToolAction, ...]] = ACTIONS
    quiet: ClassVar[tuple[str, ...]] = ("slack_bolt", "slack_sdk", "aiohttp")
    rates: ClassVar[Rates] = Rates(group_per_minute=60, per_second=20)
    direct_threads: ClassVar[bool] = False
    ping_interval: ClassVar[float] = 10.0
    settle_pause: ClassVar[float] = 5.0
    lag_warning: ClassVar[float] = 0.5
    silence: ClassVar[float] = 300.0
    on_its_way: ClassVar[float] = 60.0

    bot_token: Secret = setting(None, "The bot token, xoxb-….")
    app_token: Secret = setting(None, "The app-level token, xapp-…, which Socket Mode needs.")
    signing_secret: Secret = setting(None, "The signing secret, which mode http needs.")
    mode: Literal["socket", "http"] = setting(
        "socket", "How events arrive: by a connection of the bot's own, or as requests to `listen`."
    )
    listen: SlackListen = setting(SlackListen(), "Where mode http takes requests.")
    base_url: Url = setting(URL, "Root of the Web API, for a server or proxy of your own.")
    reply_in: Literal["thread", "channel"] = setting(
        "thread", "Where a mention in a channel is answered: in a thread under it, or beside it."
    )
    dm: DirectMessages[UserId] = setting(DirectMessages[UserId](), "Direct messages.")
    groups: Groups[UserId, ChannelId] = setting(Groups[UserId, ChannelId](), "Groups and channels.")

    def opens_thread(self, message: InboundMessage) -> bool:
        in_channel = message.origin.place.kind is ChatKind.CHANNEL
        return in_channel and message.mentioned and self.reply_in == "thread"

    def proofs(self) -> tuple[Proof, ...]:
        asked = {"bot_token": "auth.test"} | ({"app_token": "apps.connections.open"} if self.mode == "socket" else {})
        return tuple(
            Proof(key, f"{self.base_url}/{method}", {"Authorization": f"Bearer {self.secret(key)}"})
            for key, method in asked.items()
        )

    def needs(self) -> tuple[str, ...]:
        return ("bot_token", "app_token" if self.mode == "socket" else "signing_secret")


class Slack(SlackAccount, PlatformSection):
    """Slack."""

    enabled: bool = setting(False, "Connect to Slack; true as soon as a bot token is given.")
    accounts: dict[str, SlackAccount] = setting(
        {}, "Further bots; what one does not say, tokens aside, is as in the block above it."
    )


SECTION: type[ChannelSection] = Slack
