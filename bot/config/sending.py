"""The list `send_policy`: where what the model says is sent."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bot.config.values import ChatSort, Platform
from channels.section import Section, setting

# What keys of sessions begin with.
_AGENT = "agent:main:"


def _to_whole(value: str) -> str:
    return value if f"{value}:".startswith("agent:") else f"{_AGENT}{value}"


class SendRule(Section):
    """Conversations in which what the model says is sent, or not; what is not named is any."""

    action: Literal["allow", "deny"] = Field(description="deny: nothing is sent, whatever another rule allows.")
    channel: Platform | None = setting(None, "A platform, by the name of its section.")
    chat_type: ChatSort | None = setting(None, "direct, group, channel or thread; a thread is also of its chat's type.")
    key: Annotated[str, AfterValidator(_to_whole)] | None = setting(
        None, "The beginning of the session's key, with or without agent:main:.", min_length=1
    )


def denied(rules: tuple[SendRule, ...]) -> tuple[tuple[str | None, str | None, str | None], ...]:
    """Return the rules that deny, as the store takes them."""
    return tuple((rule.channel, rule.chat_type, rule.key) for rule in rules if rule.action == "deny")
