"""The section of the configuration for Discord."""

from typing import Annotated, ClassVar, Literal

from pydantic import model_validator

from channels.actions import THREADED, ToolAction
from channels.message import ChatKind, InboundMessage
from channels.section import Id, Secret, Url, conflict, looks_like, setting
from channels.settings import AccountSection, ChannelSection, DirectMessages, Groups, PlatformSection, Proof, Threads

# The actions of the `message` tool; the module `actions` carries out those that make no delivery.
_WHERE = ("to", "thread")
ACTIONS: tuple[ToolAction, ...] = (
    *THREADED,
    ToolAction("read", "what was said", (), (*_WHERE, "limit", "before")),
    ToolAction("pin", "a message", ("message_id",), _WHERE),
    ToolAction("unpin", "a message", ("message_id",), _WHERE),
    ToolAction("member_info", "who somebody is", ("person",), ("to",)),
    ToolAction("channel_info", "what a channel or thread is", (), _WHERE),
)
URL = "https://discord.com/api/v10"
GATEWAY_URL = "wss://gateway.discord.gg"
_AN_ID = "an id of Discord, which is a whole number (switch on Developer Mode, then Copy ID in a context menu)"


Snowflake = Annotated[Id, looks_like("[0-9]+", _AN_ID)]


class DiscordThreads(Threads):
    """How it takes part in threads."""

    open: Literal["off", "on_mention", "always"] = setting(
        "off", "Whether an answer in a channel opens a thread on the message: no, where it was named, or always."
    )


class DiscordAccount(AccountSection):
    """One bot. Times are seconds.

    cdn: how the addresses begin from which attachments may be downloaded. connect_timeout: until a new connection must
    have told that it is ready. heartbeat_timeout: silence after which a connection is dead. close_timeout: how long its
    other side may take to close it. guilds_timeout: how long servers may take to tell their channels.
    """

    secrets: ClassVar = {"token": ("[!-~]+", "the bot's token from the Developer Portal")}
    quiet: ClassVar[tuple[str, ...]] = ("discord",)
    offered: ClassVar[tuple[ToolAction, ...]] = ACTIONS
    cdn: ClassVar[tuple[str, ...]] = ("https://cdn.discordapp.com/", "https://media.discordapp.net/")
    connect_timeout: ClassVar[float] = 30.0
    slow_retry: ClassVar[float] = 60.0
    heartbeat_timeout: ClassVar[float] = 60.0
    close_timeout: ClassVar[float] = 3.0
    guilds_timeout: ClassVar[float] = 5.0

    token: Secret = setting(None, "The bot's token from the Developer Portal.")
    base_url: Url = setting(URL, "Root of the REST API with its version, for a proxy of your own.")
    gateway_url: Annotated[str, looks_like(r"wss?://[^\s/?#]+(/\S*)?", "a URL that begins with ws:// or wss://")] = (
        setting(GATEWAY_URL, "The gateway's WebSocket, for a proxy of your own.")
    )
    dm: DirectMessages[Snowflake] = setting(DirectMessages[Snowflake](), "Direct messages.")
    groups: Groups[Snowflake, Snowflake] = setting(Groups[Snowflake, Snowflake](), "Servers and their channels.")
    threads: DiscordThreads = setting(DiscordThreads(), "Threads and forum posts.")

    def opens_thread(self, message: InboundMessage) -> bool:
        opens = self.threads.open == "always" or (self.threads.open == "on_mention" and message.mentioned)
        return opens and message.origin.place.kind is not ChatKind.DIRECT

    def proofs(self) -> tuple[Proof, ...]:
        headers = {"Authorization": f"Bot {self.secret('token')}", "User-Agent": "DiscordBot (https://localhost, 1)"}
        return (Proof("token", f"{self.base_url}/users/@me", headers, "GET"),)


class Discord(DiscordAccount, PlatformSection):
    """Discord."""

    enabled: bool = setting(False, "Connect to Discord; true as soon as a token is given.")
    accounts: dict[str, DiscordAccount] = setting(
        {}, "Further bots; what one does not say is as in the block above it."
    )

    @model_validator(mode="after")
    def _one_server(self) -> "Discord":
        """Refuse bots at different servers: their addresses are class attributes of the library."""
        used = [(name, bot) for name, bot in self.bots().items() if bot.enabled]
        for key in ("base_url", "gateway_url"):
            for name, bot in used:
                if getattr(bot, key) != getattr(used[0][1], key):
                    text = f"not the same for all bots of Discord; they share one {key}, said once in the block above"
                    raise conflict(text, ("accounts", name, key))
        return self


SECTION: type[ChannelSection] = Discord
