"""How the methods of the Discord stand-in are found, and what they are given. `@route` puts one into the table."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.standins.discord_fields import check, record
from tests.standins.discord_files import File
from tests.standins.discord_ledger import Json


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what its path names (decoded), its query and body (both checked), its files by number."""

    path: dict[str, str]
    query: Json
    body: Any
    files: dict[str, File] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        return self.path[name]


# Takes the server and what was asked; returns what is answered, None for 204.
Method = Callable[[Any, Asked], object]


@dataclass(frozen=True, slots=True)
class Route:
    """One documented endpoint. `open` ones are allowed by the token in their path, without the bot's."""

    name: str
    pattern: re.Pattern[str]
    call: Method
    body: Json | None
    query: Json
    files: bool
    open: bool

    @property
    def http_method(self) -> str:
        return self.name.partition(" ")[0]

    def read_query(self, given: dict[str, str]) -> Json:
        """The query, numbers read as such."""
        kinds: Json = self.query["properties"]
        read: Json = {}
        for name, value in given.items():
            number = "integer" in kinds.get(name, {}).get("type", ()) and "string" not in kinds[name]["type"]
            read[name] = int(value) if number and re.fullmatch(r"-?\d+", value) else value
        check(read, self.query)
        return read


ROUTES: list[Route] = []


def route(
    method: str,
    path: str,
    *,
    body: Json | None = None,
    query: Json | None = None,
    files: bool = False,
    open: bool = False,
) -> Callable[[Method], Method]:
    """Answer `method` at `path`, whose {names} stand for one part each."""
    pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

    def put(call: Method) -> Method:
        ROUTES.append(Route(f"{method} {path}", pattern, call, body, query or _NO_QUERY, files, open))
        return call

    return put


_NO_QUERY = record()


def find(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """The route of a path as it stands in the request line, with the decoded parts; the first one that fits."""
    for known in ROUTES:
        match = known.pattern.fullmatch(path)
        if match and known.http_method == method:
            return known, {name: unquote(value) for name, value in match.groupdict().items()}
    return None


def is_known(path: str) -> bool:
    """Whether a path is served at all, so that 405 differs from 404."""
    return any(known.pattern.fullmatch(path) for known in ROUTES)
