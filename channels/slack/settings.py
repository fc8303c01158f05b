"""What the configuration says of Slack, and what one account of it needs to know.

The adapter, and with it the platform's libraries, is imported only when an account is built.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SecretStr, model_validator

from channels.base import Channel, Times
from channels.failures import Patience
from channels.limits import Rates
from channels.message import ChatKind, InboundMessage
from channels.section import Id, Secret, Url, conflict, looks_like
from channels.settings import AccountSection, ChannelSection, DirectMessages, Groups, HttpPath, Listen, PlatformSection

URL = "https://slack.com/api"
UserId = Annotated[
    Id, looks_like("[UW][A-Z0-9]{2,}", "a Slack member ID, such as U0AB12CD (copied from the person's profile)")
]
ChannelId = Annotated[
    Id,
    looks_like("[CG][A-Z0-9]{2,}", "a Slack channel ID, such as C0AB12CD (at the end of the channel's details)"),
]
_KINDS = {
    "bot_token": ("xoxb-", "the bot token; OAuth & Permissions on the app's page has it"),
    "app_token": ("xapp-", "an app-level token with connections:write; Basic Information on the app's page makes it"),
    "signing_secret": ("", "the signing secret; Basic Information on the app's page has it"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackSettings(Patience):
    """One bot. Times are seconds.

    listen: where requests of Slack are taken; None: Socket Mode. base_url: of the Web API; files and addresses to
    answer to are trusted there and on Slack's own hosts.
    ping_interval: how often a WebSocket that says nothing is pinged; half as much later it counts as gone.
    settle_pause: between two looks for a message whose outcome is unknown. lag_warning: what the event loop may be late
    before the log says so.
    """

    bot_token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    signing_secret: str = field(default="", repr=False)
    base_url: str = URL
    listen: Listen | None = None
    ping_interval: float = 10.0
    settle_pause: float = 5.0
    lag_warning: float = 0.5
    limits: Rates = field(default_factory=lambda: Rates(group_per_minute=60, per_second=20))


class SlackListen(Listen):
    """Where requests of Slack are taken."""

    path: HttpPath = Field(
        default="/slack/events", description="The path of the Request URLs; takes all kinds of requests."
    )


class SlackAccount(AccountSection):
    """One bot."""

    identity: ClassVar[str] = "bot_token"
    quiet: ClassVar[tuple[str, ...]] = ("slack_bolt", "slack_sdk", "aiohttp")

    bot_token: Secret = Field(default=None, description="The bot token, xoxb-….")
    app_token: Secret = Field(default=None, description="The app-level token, xapp-…, which Socket Mode needs.")
    signing_secret: Secret = Field(default=None, description="The signing secret, which mode http needs.")
    mode: Literal["socket", "http"] = Field(
        default="socket", description="How events arrive: by a connection of the bot's own, or as requests to `listen`."
    )
    listen: SlackListen = Field(default=SlackListen(), description="Where mode http takes requests.")
    base_url: Url = Field(default=URL, description="Root of the Web API, for a server or proxy of your own.")
    reply_in: Literal["thread", "channel"] = Field(
        default="thread", description="Where a mention in a channel is answered: in a thread under it, or beside it."
    )
    dm: DirectMessages[UserId] = Field(default=DirectMessages[UserId](), description="Direct messages.")
    groups: Groups[UserId, ChannelId] = Field(default=Groups[UserId, ChannelId](), description="Groups and channels.")

    def opens_thread(self, message: InboundMessage) -> bool:
        in_channel = message.origin.place.kind is ChatKind.CHANNEL
        return in_channel and message.mentioned and self.reply_in == "thread"

    def build(self, times: Times) -> Channel:
        from channels.slack.adapter import SlackChannel

        settings = SlackSettings(
            bot_token=self._secret("bot_token"),
            app_token=self._secret("app_token"),
            signing_secret=self._secret("signing_secret"),
            base_url=self.base_url,
            listen=self.listen if self.mode == "http" else None,
        )
        return SlackChannel(settings, times)

    def needs(self) -> tuple[str, ...]:
        """The keys without which this account cannot work."""
        return ("bot_token", "app_token" if self.mode == "socket" else "signing_secret")

    def _secret(self, name: str) -> str:
        value: SecretStr | None = getattr(self, name)
        return value.get_secret_value() if value else ""

    @model_validator(mode="after")
    def _are_tokens(self) -> "SlackAccount":
        for name, (prefix, words) in _KINDS.items():
            value = self._secret(name)
            if value and (not value.startswith(prefix) or any(letter.isspace() for letter in value)):
                raise conflict(f"found a hidden value; allowed: {prefix}…, {words}", (name,))
        return self


class Slack(SlackAccount, PlatformSection):
    """Slack."""

    enabled: bool = Field(default=False, description="Connect to Slack; true as soon as a bot token is given.")
    accounts: dict[str, SlackAccount] = Field(
        default={}, description="Further bots; what one does not say, tokens aside, is as in the block above it."
    )

    @model_validator(mode="after")
    def _has_its_tokens(self) -> "Slack":
        if not self.enabled:
            return self
        if not self.bots():
            words = _KINDS["bot_token"][1]
            raise conflict(f"missing; Slack is enabled and needs {words}", ("bot_token",), ("enabled",))
        for account, bot in self.bots().items():
            assert isinstance(bot, SlackAccount)
            at = ("accounts", account) if account else ()
            for name in bot.needs() if bot.enabled else ():
                if not bot._secret(name):
                    raise conflict(f"missing; mode {bot.mode} needs {_KINDS[name][1]}", (*at, name), (*at, "mode"))
        return self


SECTION: type[ChannelSection] = Slack
