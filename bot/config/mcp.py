"""The section `mcp`: the servers whose tools the model may use."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, SecretStr, field_validator, model_validator

from bot.config.values import Seconds
from bot.telemetry.redact import SECRET_NAME, mask_url
from channels.registry import FOLDERS
from channels.section import Section, Url, conflict, refused, setting

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
# Beginnings of the names of tools that Hark has itself: `<server>_<tool>` must not be one of them.
_OWN = ("web", "memory", "session", "sessions", "stay", "ask", "task", "group", *FOLDERS)
# An argument that names the secret after it, or holds it after the sign.
_NAMES_SECRET = re.compile(r"(?i)-{0,2}[\w-]*(?:token|secret|passw\w*|key|pat|auth\w*)(?:[=:](.+))?")
_LOOKS_SECRET = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[^\s/\\]{16,}")
_SECRET_NAME = re.compile(r"(?i)(?:^|[-_])(?:pat|pass\w*|auth\w*|cookie|credentials?|dsn|key|token|secret)(?:$|[-_])")


def _check_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise refused("a name of letters, digits, _ and -, at most 32")
    if value.lower().partition("_")[0] in _OWN:
        raise conflict(f"`{value}` would give tools the names of Hark's own; call it something else")
    return value


ServerName = Annotated[str, AfterValidator(_check_name)]


class Server(Section):
    """An MCP server: a command that speaks over its standard input and output, or a URL."""

    command: str | None = setting(None, "The program, started once for all conversations.", min_length=1)
    args: tuple[str, ...] = setting((), "Its arguments.")
    env: dict[str, SecretStr] = setting({}, "Variables that it gets beside PATH, HOME and the language.")
    url: Url | None = setting(None, "The address of a server that speaks HTTP, in place of a command.")
    headers: dict[str, SecretStr] = setting({}, "Headers of each request to it.")
    timeout_seconds: Seconds = setting(60, "A call that takes longer is ended.", gt=0)
    looks: tuple[str, ...] = setting((), "Its tools that only look, by your word: `search`, `get_*`.")

    @field_validator("env", "headers")
    @classmethod
    def _without_nul(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, one in value.items():
            if not name or re.search(r"[\x00\r\n=:\s]", name) or re.search(r"[\x00\r\n]", one.get_secret_value()):
                raise conflict(f"{name!r} cannot have this name or value", (name,))
        return value

    @model_validator(mode="after")
    def _is_one(self) -> "Server":
        if (self.command is None) == (self.url is None):
            raise conflict("a server needs either `command` or `url`")
        if self.url is not None and (self.args or self.env):
            raise conflict("`args` and `env` belong to a `command`; a `url` has `headers`", ("url",))
        if self.command is not None and self.headers:
            raise conflict("`headers` belong to a `url`", ("headers",))
        return self

    def secrets(self) -> Iterator[str]:
        """Yield what is a secret of its arguments, variables, headers and address, by its name or its look."""
        named = False
        for one in self.args:
            found = _NAMES_SECRET.fullmatch(one)
            if named or (found and found[1]) or _LOOKS_SECRET.fullmatch(one):
                yield found[1] if found and found[1] else one
            named = bool(found and not found[1] and one.startswith("-"))
            yield from mask_url(one)[1]
        for name, value in (*self.env.items(), *self.headers.items()):
            text = value.get_secret_value()
            if SECRET_NAME.search(name) or _SECRET_NAME.search(name) or _LOOKS_SECRET.fullmatch(text):
                yield text
                yield text.rpartition(" ")[2]  # a header: what stands behind "Bearer"
            yield from mask_url(text)[1]
        yield from mask_url(self.url or "")[1]


class Mcp(Section):
    """MCP servers (docs/mcp.md)."""

    servers: dict[ServerName, Server] = setting({}, "By the names that begin the names of their tools.")
