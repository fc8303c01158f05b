"""The section of hooks: commands and addresses that are called at points of the service's work."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from bot.config.values import Seconds
from channels.section import Section, Whole, conflict, refused, setting

# The points as the configuration and the names of functions call them; `bot/hooks/points.py` says what they are.
POINT_NAMES = (
    *("before_model_resolve", "before_prompt_build", "agent_bootstrap", "before_agent_reply", "agent_end"),
    *("before_compaction", "after_compaction", "before_tool_call", "after_tool_call", "tool_result_persist"),
    *("message_received", "message_sending", "message_sent", "command", "session_start", "session_end"),
    *("gateway_start", "gateway_stop", "before_install"),
)
_OF_TOOLS = ("before_tool_call", "after_tool_call", "tool_result_persist")


def _check_point(value: str) -> str:
    name = value.replace(":", "_")
    if name not in POINT_NAMES:
        raise refused(", ".join(POINT_NAMES))
    return name


def _check_matcher(value: str) -> str:
    if value in ("", "*"):  # as users of Claude Code write "any tool"
        return ".*"
    try:
        re.compile(value)
    except re.error as error:
        raise refused(f"a regular expression ({error})") from None
    return value


def _check_url(value: str) -> str:
    if urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname:
        raise refused("an address that begins with http:// or https://")
    return value


Point = Annotated[str, AfterValidator(_check_point)]


class HookSettings(Section):
    """One hook: a command or an address."""

    command: tuple[str, ...] = setting((), "A program and its arguments, which gets the event on standard input.")
    url: Annotated[str, AfterValidator(_check_url)] | None = setting(None, "An address that the event is posted to.")
    matcher: Annotated[str, AfterValidator(_check_matcher)] | None = setting(
        None, "A regular expression that the whole name of the tool must match."
    )
    timeout: Annotated[Seconds, Field(gt=0, le=600)] = setting(10.0, "How long it may take.")
    priority: Whole = setting(0, "Hooks of a higher one are called first.", ge=-1_000_000, le=1_000_000)

    @model_validator(mode="after")
    def _one_of_them(self) -> "HookSettings":
        if bool(self.command) == (self.url is not None):
            raise conflict("a hook has either `command` or `url`")
        return self


def check_hooks(hooks: dict[str, tuple[HookSettings, ...]]) -> dict[str, tuple[HookSettings, ...]]:
    """Refuse a matcher where no tool is called. Raises the error of the configuration."""
    for point, found in hooks.items():
        for at, one in enumerate(found):
            if one.matcher is not None and point not in _OF_TOOLS:
                raise conflict(
                    f"a matcher is about tools; only {', '.join(_OF_TOOLS)} have one", (point, at, "matcher")
                )
    return hooks


HookSections = Annotated[dict[Point, tuple[HookSettings, ...]], AfterValidator(check_hooks)]
