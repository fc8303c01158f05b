"""What the configuration says of Telegram, which is what one account of it needs to know.

The adapter, and with it the platform's library, is imported only when an account is built.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from channels.actions import ToolAction
from channels.base import Channel, Times
from channels.section import Id, Secret, Url, looks_like
from channels.settings import AccountSection, ChannelSection, DirectMessages, Groups, Listen, PlatformSection
from channels.telegram.actions import ACTIONS

URL = "https://api.telegram.org/bot"


# Somebody by id; never a chat that writes in its own name (a channel, an anonymous administrator).
UserId = Annotated[Id, looks_like(r"[0-9]+", "a Telegram user id, which is a whole number (names can change hands)")]


class TelegramAccount(AccountSection):
    """One bot. poll_timeout: seconds that Telegram may hold a poll that has nothing to tell."""

    secrets: ClassVar = {"token": (r"[^/?#\s]+", "the token from @BotFather")}
    quiet: ClassVar[tuple[str, ...]] = ("telegram", "httpx", "httpcore")
    offered: ClassVar[tuple[ToolAction, ...]] = ACTIONS
    poll_timeout: ClassVar[int] = 30

    token: Secret = Field(default=None, description="The token from @BotFather.")
    base_url: Url = Field(default=URL, description="Root of the Bot API, for a server or proxy of your own.")
    base_file_url: Url | None = Field(default=None, description="Root for files; without it /file/bot beside base_url.")
    mode: Literal["polling", "webhook"] = Field(
        default="polling", description="How updates arrive: asked for, or brought by Telegram to webhook_url."
    )
    listen: Listen = Field(default=Listen(), description="Where the updates of a webhook are taken.")
    webhook_url: Url | None = Field(
        default=None, description="The public HTTPS address that leads to listen; without it that of listen itself."
    )
    rich: Literal["off", "auto"] = Field(
        default="off",
        description="auto: tables, task lists and formulas as rich messages, which some apps do not show.",
    )
    dm: DirectMessages[UserId] = Field(default=DirectMessages[UserId](), description="Direct messages.")
    groups: Groups[UserId] = Field(default=Groups[UserId](), description="Groups and channels.")

    def build(self, times: Times) -> Channel:
        from channels.telegram.adapter import TelegramChannel

        return TelegramChannel(self, times)


class Telegram(TelegramAccount, PlatformSection):
    """Telegram."""

    enabled: bool = Field(default=False, description="Connect to Telegram; true as soon as a token is given.")
    accounts: dict[str, TelegramAccount] = Field(
        default={}, description="Further bots; what one does not say is as in the block above it."
    )


SECTION: type[ChannelSection] = Telegram
