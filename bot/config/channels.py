"""The `channels` section: one subsection per platform, with what is common to all of them.

Says nothing about how a platform works; `bot.wiring` hands these values to the adapters.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from bot.config.section import Section
from bot.config.values import Id, Secret, Url, Whole, refused

TELEGRAM_URL = "https://api.telegram.org/bot"
TELEGRAM_FILE_URL = "https://api.telegram.org/file/bot"


def _check_telegram_id(value: str) -> str:
    # A name would never match a sender, so the person would be locked out without a word.
    if not value.isascii() or not value.isdigit():
        raise refused("a Telegram user id, which is a whole number (names can change hands)")
    return value


class DirectMessages(Section):
    """Who may write to the bot directly."""

    policy: Literal["allowlist", "open"] = Field(
        default="allowlist",
        description="Who is answered in direct messages: those in allow_from, or everybody.",
    )
    allow_from: tuple[Annotated[Id, AfterValidator(_check_telegram_id)], ...] = Field(
        default=(), description="The ids of those who are answered under the policy allowlist."
    )


class Streaming(Section):
    """How an answer is cut into messages while the model writes it."""

    mode: Literal["block"] = Field(default="block", description="Several ordinary messages, each sent when it is full.")
    break_at: Literal["text_end", "message_end"] = Field(
        default="text_end",
        alias="break",
        description="Send while the text is written, or only when the message of the model is complete.",
    )
    min_chars: Whole = Field(
        default=800,
        ge=1,
        description="A block is not cut before this many characters; at most two thirds of max_chars count.",
    )
    max_chars: Whole = Field(default=1200, ge=64, description="A block never has more characters than this.")


class Telegram(Section):
    """A Telegram bot."""

    enabled: bool = Field(default=False, description="Connect to Telegram; true as soon as a token is given.")
    token: Secret = Field(default=None, description="The token from @BotFather.")
    base_url: Url = Field(default=TELEGRAM_URL, description="Root of the Bot API, for a server or proxy of your own.")
    base_file_url: Url = Field(
        default=TELEGRAM_FILE_URL, description="Root for files; follows base_url when that ends in /bot."
    )
    mode: Literal["polling"] = Field(default="polling", description="How updates arrive.")
    dm: DirectMessages = Field(default=DirectMessages(), description="Direct messages.")
    streaming: Streaming = Field(default=Streaming(), description="How answers are cut into messages.")
    prompt: str | None = Field(default=None, description="Added to the system prompt in conversations on Telegram.")

    @model_validator(mode="before")
    @classmethod
    def _follow(cls, data: object) -> object:
        """Derive `enabled` from the token and `base_file_url` from `base_url` where they are not written.

        Without the second rule files would be asked of the official server while messages go to another one.
        """
        if not isinstance(data, dict):
            return data
        known = dict(data)
        if known.get("enabled") is None:
            known["enabled"] = bool(known.get("token"))
        base = known.get("base_url")
        if isinstance(base, str) and known.get("base_file_url") is None:
            root = base.rstrip("/")
            if root.endswith("/bot"):
                known["base_file_url"] = root.removesuffix("bot") + "file/bot"
        return known


class Console(Section):
    """The terminal in which `hark run` was started."""

    enabled: bool = Field(default=True, description="Talk in the terminal of `hark run`, when it is one.")


class Channels(Section):
    """The places where people talk to the bot."""

    telegram: Telegram = Field(default=Telegram(), description="Telegram.")
    console: Console = Field(default=Console(), description="The terminal.")
