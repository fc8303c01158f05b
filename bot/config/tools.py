"""The sections of what the model may use: tools, commands on this machine, messages beside the answer."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from bot.config.values import Person, Seconds, ToolPattern, check_tools
from channels.section import Section, conflict
from channels.settings import ToolLists

# How far commands may go: none; those that are allowed; all of them.
Security = Literal["deny", "allowlist", "full"]


def _check_rule(text: str) -> str:
    from agent.shell import parse_rule  # most configurations have none

    try:
        parse_rule(text)
    except ValueError as error:
        raise conflict(str(error)) from None
    return text


class Exec(Section):
    """The tool that runs commands on this machine."""

    security: Security = Field(
        default="allowlist",
        description="deny refuses every command; allowlist runs those that only read and those in `allowlist`; "
        "full runs all of them, as the user of the service.",
    )
    ask: Literal["off", "on-miss", "always"] = Field(
        default="on-miss", description="When a person is asked: never, when the allowlist does not allow it, always."
    )
    ask_fallback: Security = Field(
        default="deny", description="What holds for a command about which nobody decided in time."
    )
    allowlist: tuple[Annotated[str, AfterValidator(_check_rule)], ...] = Field(
        default=(), description="Commands that need no question besides those that only read, with their arguments."
    )
    timeout_seconds: Seconds = Field(default=120, gt=0, description="A command that runs longer is ended.")


class Messaging(Section):
    """The tool that writes into conversations beside the answer."""

    reach: Literal["conversation", "channel", "all"] = Field(
        default="channel",
        description="Only the conversation the run answers in, others of the same account too, or of every channel.",
    )


class Tools(Section):
    """What the model may use."""

    profile: Literal["minimal", "messaging", "coding", "full"] = Field(
        default="full", description="A set of tools to begin with, out of which the keys below choose; full is all."
    )
    allow: tuple[ToolPattern, ...] | None = Field(default=None, description="Only these tools; without it all of them.")
    deny: tuple[ToolPattern, ...] = Field(default=(), description="Never these tools, also when they are in allow.")
    by_sender: dict[Person, ToolLists] = Field(
        default={}, description="Less for single people, <channel>:<id>, or <channel>:* for all of a channel."
    )
    require_approval: tuple[ToolPattern, ...] = Field(
        default=(), description="Tools about each call of which a person is asked, besides what the tools ask."
    )
    exec: Exec = Field(default=Exec(), description="Commands on this machine.")
    message: Messaging = Field(default=Messaging(), description="Messages beside the answer.")

    @field_validator("by_sender")
    @classmethod
    def _exist(cls, by_sender: dict[str, ToolLists]) -> dict[str, ToolLists]:
        for who, lists in by_sender.items():
            check_tools(lists, (who,))
        return by_sender
