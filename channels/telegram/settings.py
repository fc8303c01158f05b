"""The section of the configuration for Telegram."""

from ipaddress import ip_address
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import model_validator

from channels.actions import COMMON, ToolAction
from channels.section import Id, Secret, Url, conflict, looks_like, setting
from channels.settings import AccountSection, ChannelSection, DirectMessages, Groups, Listen, PlatformSection, Proof

# The actions of the `message` tool; the module `actions` carries out those that make no delivery.
ACTIONS: tuple[ToolAction, ...] = (
    *COMMON,
    ToolAction("pin", "a message", (), ("to", "message_id")),
    ToolAction("unpin", "a message", (), ("to", "message_id")),
    ToolAction("topic_create", "a topic in a forum", ("name",), ("to",)),
    ToolAction("topic_edit", "rename a topic", ("name",), ("to", "thread")),
    ToolAction("chat_info", "name and description of a conversation", (), ("to",)),
)
URL = "https://api.telegram.org/bot"


# The id of a person, never of a chat that writes in its own name (a channel, an anonymous administrator).
UserId = Annotated[Id, looks_like(r"[0-9]+", "a Telegram user id, which is a whole number (names can change hands)")]


def _is_public(url: str) -> bool:
    """Whether Telegram may reach a URL: it has to be HTTPS and not only of this machine or its network."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        reached = ip_address(host).is_global
    except ValueError:
        reached = "." in host and not host.endswith((".local", ".localhost", ".internal"))
    return parts.scheme == "https" and reached


class TelegramAccount(AccountSection):
    """One bot."""

    secrets: ClassVar = {"token": (r"[^/?#\s]+", "the token from @BotFather")}
    quiet: ClassVar[tuple[str, ...]] = ("telegram", "httpx", "httpcore")
    offered: ClassVar[tuple[ToolAction, ...]] = ACTIONS
    # Seconds for which Telegram may hold a poll without updates.
    poll_timeout: ClassVar[int] = 30

    token: Secret = setting(None, "The token from @BotFather.")
    base_url: Url = setting(URL, "Root of the Bot API, for a server or proxy of your own.")
    base_file_url: Url | None = setting(None, "Root for files; without it /file/bot beside base_url.")
    mode: Literal["polling", "webhook"] = setting(
        "polling", "How updates arrive: asked for, or brought by Telegram to webhook_url."
    )
    listen: Listen = setting(Listen(), "Where the updates of a webhook are taken.")
    webhook_url: Url | None = setting(
        None, "The public HTTPS address that leads to listen; needed unless the server is one of your own."
    )
    rich: Literal["off", "auto"] = setting(
        "off", "auto: tables, task lists and formulas as rich messages, which some apps do not show."
    )
    dm: DirectMessages[UserId] = setting(DirectMessages[UserId](), "Direct messages.")
    groups: Groups[UserId] = setting(Groups[UserId](), "Groups and channels.")

    def proofs(self) -> tuple[Proof, ...]:
        return (Proof("token", f"{self.base_url}{self.secret('token')}/getMe"),)


class Telegram(TelegramAccount, PlatformSection):
    """Telegram."""

    enabled: bool = setting(False, "Connect to Telegram; true as soon as a token is given.")
    accounts: dict[str, TelegramAccount] = setting(
        {}, "Further bots; what one does not say is as in the block above it."
    )

    @model_validator(mode="after")
    def _can_be_brought(self) -> "Telegram":
        """Refuse a webhook that Telegram cannot reach; a Bot API server of one's own may reach any address."""
        for account, bot in self.bots().items() if self.enabled else ():
            assert isinstance(bot, TelegramAccount)
            if bot.enabled and bot.mode == "webhook" and bot.base_url == URL and not _is_public(bot.webhook_url or ""):
                text = "mode webhook needs the public address that leads to `listen`, such as https://bot.example/hook"
                raise conflict(text, ("accounts", account, "webhook_url") if account else ("webhook_url",))
        return self


SECTION: type[ChannelSection] = Telegram
