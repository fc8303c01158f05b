"""What the configuration says of Telegram, and what one account of it needs to know.

The adapter, and with it the platform's library, is imported only when an account is built.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from channels.base import Channel, Times
from channels.failures import Patience
from channels.limits import Rates
from channels.section import Id, Secret, Url, conflict, looks_like
from channels.settings import AccountSection, ChannelSection, DirectMessages, Groups, Listen, PlatformSection

URL = "https://api.telegram.org/bot"
FILE_URL = "https://api.telegram.org/file/bot"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings(Patience):
    """One bot. base_url and base_file_url: the token follows without a separator.

    listen: where Telegram brings updates instead of being polled; webhook_url: the address under which it reaches that.
    poll_timeout: seconds that Telegram may hold a poll that has nothing to tell. rich: whether blocks with tables, task
    lists or mathematics go out as rich messages.
    """

    token: str = field(repr=False)
    listen: Listen | None = None
    webhook_url: str = ""
    base_url: str = URL
    base_file_url: str = FILE_URL
    poll_timeout: int = 30
    limits: Rates = field(default_factory=Rates)
    rich: bool = False


UserId = Annotated[Id, looks_like(r"[0-9]+", "a Telegram user id, which is a whole number (names can change hands)")]
"""Somebody by id; never a chat that writes in its own name (a channel, an anonymous administrator)."""


class TelegramAccount(AccountSection):
    """One bot."""

    quiet: ClassVar[tuple[str, ...]] = ("telegram", "httpx", "httpcore")

    token: Secret = Field(default=None, description="The token from @BotFather.")
    base_url: Url = Field(default=URL, description="Root of the Bot API, for a server or proxy of your own.")
    base_file_url: Url = Field(default=FILE_URL, description="Root for files; follows base_url when that ends in /bot.")
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

        assert self.token is not None, "an account without a token is refused"
        settings = TelegramSettings(
            token=self.token.get_secret_value(),
            listen=self.listen if self.mode == "webhook" else None,
            webhook_url=self.webhook_url or "",
            base_url=self.base_url,
            base_file_url=self.base_file_url,
            rich=self.rich == "auto",
        )
        return TelegramChannel(settings, times)

    @model_validator(mode="before")
    @classmethod
    def _follow(cls, data: object) -> object:
        """Derive `base_file_url` from `base_url` where it is not written.

        Otherwise files would be asked of the official server while messages go to another one.
        """
        base = data.get("base_url") if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(base, str) or data.get("base_file_url") is not None:
            return data
        root = base.rstrip("/")
        return {**data, "base_file_url": root.removesuffix("bot") + "file/bot"} if root.endswith("/bot") else data

    @model_validator(mode="after")
    def _has_its_token(self) -> "TelegramAccount":
        if self.enabled and not self.bots():
            raise conflict("missing; Telegram is enabled and needs the token from @BotFather", ("token",), ("enabled",))
        if self.token is not None and any(letter in "/?# \t\n" for letter in self.token.get_secret_value()):
            raise conflict("found a hidden value; allowed: a token as @BotFather writes it", ("token",))
        return self


class Telegram(TelegramAccount, PlatformSection):
    """Telegram."""

    enabled: bool = Field(default=False, description="Connect to Telegram; true as soon as a token is given.")
    accounts: dict[str, TelegramAccount] = Field(
        default={}, description="Further bots; what one does not say is as in the block above it."
    )


SECTION: type[ChannelSection] = Telegram
