"""The sections of what the model may use: tools, commands on this machine, messages beside the answer."""

from typing import Annotated, Literal

from pydantic import AfterValidator, field_validator

from bot.config.values import Persons, Seconds, ToolPattern, check_tools
from channels.section import Section, conflict, setting
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

    security: Security = setting(
        "allowlist",
        "deny: there are no commands; allowlist: what only looks runs in the sandbox, more is asked for or "
        "in `allowlist`; full: all that the sandbox holds runs without a question.",
    )
    ask: Literal["off", "on-miss", "always"] = setting(
        "on-miss", "When a person is asked: never, about what may not run by itself, always."
    )
    ask_fallback: Security = setting("deny", "What holds for a command about which nobody decided in time.")
    allowlist: tuple[Annotated[str, AfterValidator(_check_rule)], ...] = setting(
        (), "Commands, with their arguments, that run on this machine itself without a question."
    )
    timeout_seconds: Seconds = setting(120, "A command that runs longer is ended.", gt=0)
    sandbox: Literal["auto", "bubblewrap", "sandlock", "seatbelt", "none"] = setting(
        "auto", "What holds commands in; auto is the first that is proved at start. Where none is, nearly all ask."
    )
    in_sandbox: Literal["ask", "allow"] = setting(
        "ask", "Whether a command may write in the workspace, in the sandbox without network, without a question."
    )
    network: Literal["ask", "allow", "deny"] = setting(
        "ask",
        "Whether a command in the sandbox may use the network, and write in the workspace: ask a person, "
        "yes without a question, never.",
    )


class Messaging(Section):
    """The tool that writes into conversations beside the answer."""

    reach: Literal["conversation", "channel", "all"] = setting(
        "channel", "Only the conversation the run answers in, others of the same account too, or of every channel."
    )


UntrustedKind = Literal["web", "file", "person", "command", "skill", "mcp"]


class Tools(Section):
    """What the model may use."""

    profile: Literal["minimal", "guest", "messaging", "coding", "full"] = setting(
        "full",
        "A set of tools to begin with, out of which the keys below choose; full is all, guest is for "
        "everybody what it always is for people who are no owners.",
    )
    allow: tuple[ToolPattern, ...] | None = setting(None, "Only these tools; without it all of them.")
    deny: tuple[ToolPattern, ...] = setting((), "Never these tools, also when they are in allow.")
    by_sender: dict[Persons, ToolLists] = setting(
        {},
        "Less for single people, <channel>:<id>, or <channel>:* for all of a channel; also more, for "
        "people who are no owners.",
    )
    require_approval: tuple[ToolPattern, ...] = setting(
        (), "Tools about each call of which a person is asked, besides what the tools ask."
    )
    untrusted: dict[UntrustedKind, Literal["ask", "allow"]] = setting(
        {},
        "Whether a person is asked before a call acts when text of this kind stands in the request: ask, "
        "which is the default, or allow.",
    )
    exec: Exec = setting(Exec(), "Commands on this machine.")
    message: Messaging = setting(Messaging(), "Messages beside the answer.")

    @field_validator("by_sender")
    @classmethod
    def _exist(cls, by_sender: dict[str, ToolLists]) -> dict[str, ToolLists]:
        for who, lists in by_sender.items():
            check_tools(lists, (who,))
        return by_sender
