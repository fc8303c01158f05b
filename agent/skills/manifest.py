"""The head of a `SKILL.md`: what a skill is for, what it needs, and which tools it means to use.

The format is the published one of Agent Skills: YAML between two lines `---`, then Markdown. What a skill needs stands
in `requires`, or where OpenClaw's skills have it, in `metadata.openclaw`. Heads are written by hand: what is not needed
here is passed over, and a description with a colon in it needs no quotation marks.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from agent.fences import harmless

FILE = "SKILL.md"
# The most bytes of a SKILL.md.
MAX_BYTES = 256 * 1024
# The most characters of its head, and brackets in it: YAML is read slowly, most of all what is nested, and read is also
# the head of a skill that nobody has looked at.
_MAX_HEAD, _MAX_BRACKETS = 8 * 1024, 200
_HEAD = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
# A description that is no quotation, block or list.
_PLAIN = re.compile(r"^(description:)[ \t]+([^\s\"'|>\[{](?:.*[^ \t\n])?)[ \t]*$", re.MULTILINE)
# A name with what it is limited to in parentheses, as `Bash(git add:*)`.
_TOOL = re.compile(r"([^\s,()]+)(?:\((?:[^()]|\([^()]*\))*\))?")
# Names of tools in skills that were written for Claude Code, where ours differ in more than case.
_OURS = {"bash": "exec", "webfetch": "web_fetch", "websearch": "web_search", "ls": "read", "multiedit": "edit"}
# In `metadata`: where OpenClaw has what a skill needs, with its former names.
_THEIRS = ("openclaw", "clawdbot", "moltbot")
_SYSTEMS = {"macos": "darwin", "mac": "darwin", "windows": "win32"}


class SkillError(Exception):
    """A skill cannot be used; the text says why."""


def _listed(value: object) -> object:
    return re.findall(r"[^\s,]+", value) if isinstance(value, str) else value or ()


def _tools(value: object) -> object:
    text = value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else ""
    names = (_OURS.get(found[1].lower(), found[1]) for found in _TOOL.finditer(text))
    return tuple(map(_of_server, names)) if isinstance(value, str | list) else value


def _of_server(name: str) -> str:
    """Return how Hark calls a tool of an MCP server, or all of them, that is named as Claude Code has it."""
    _, is_one, rest = name.partition("mcp__")
    return name if not is_one else rest.replace("__", "_", 1) if "__" in rest else f"{rest}_*"


_Words = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class Requires(BaseModel):
    """What a skill needs. What this version does not know cannot be there, so it is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Programs, all of them and one of them; variables of the environment; systems, one of which it must be.
    bins: _Words = ()
    any_bins: _Words = Field(default=(), validation_alias=AliasChoices("any_bins", "anyBins"))
    env: _Words = ()
    os: _Words = ()

    def missing(self, environ: Mapping[str, str], which: Callable[[str], str | None] = shutil.which) -> str:
        """Return what is missing here, in words; empty: nothing is. which: finds a program."""
        found = [f"the program `{one}`" for one in self.bins if not which(one)]
        if self.any_bins and not any(map(which, self.any_bins)):
            found.append(f"one of the programs {', '.join(self.any_bins)}")
        found += [f"the environment variable `{one}`" for one in self.env if not environ.get(one)]
        if self.os and sys.platform not in {_SYSTEMS.get(one.lower(), one.lower()) for one in self.os}:
            found.append(f"the system {' or '.join(self.os)}")
        return ", ".join(found)


class Manifest(BaseModel):
    """The head of a skill. Other keys are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
    description: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1024)]
    # The tools that it means to use; None: it does not say. It never gets more than there are without it.
    tools: Annotated[tuple[str, ...] | None, BeforeValidator(_tools)] = Field(None, validation_alias="allowed-tools")
    requires: Annotated[Requires, BeforeValidator(lambda value: value or {})] = Requires()

    @property
    def line(self) -> str:
        """The description on one line, without what could pass for words of the service."""
        return " ".join(harmless(self.description).split())


def parse(text: str) -> Manifest:
    """Return the head of a SKILL.md. Raises SkillError."""
    from ruamel.yaml.error import YAMLError  # most workspaces have no skill

    found = _HEAD.match(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    if found is None:
        raise SkillError(f"{FILE} begins with no head between two lines `---`")
    if len(found[1]) > _MAX_HEAD or sum(map(found[1].count, "[{")) > _MAX_BRACKETS:
        raise SkillError(f"the head of {FILE} has more than {_MAX_HEAD // 1024} KB or {_MAX_BRACKETS} brackets")
    try:
        head = _loaded(_PLAIN.sub(_quoted, found[1]))
        if not isinstance(head, dict):
            raise SkillError(f"the head of {FILE} is no mapping")
        if "requires" not in head:
            head["requires"] = _their_needs(head.get("metadata"))
        return Manifest.model_validate(head)
    except ValidationError as error:
        raise SkillError(_said(error.errors()[0])) from None
    except (YAMLError, RecursionError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        raise SkillError(f"the head of {FILE} is no YAML{where}: {getattr(error, 'problem', '') or reason}") from None


def _quoted(found: re.Match[str]) -> str:
    return f"{found[1]} {json.dumps(found[2], ensure_ascii=False)}" if ": " in found[2] else found[0]


def _loaded(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(text)


def _their_needs(metadata: object) -> object:
    """Return what a skill needs as OpenClaw has it: below `metadata`, which may be a text that holds JSON."""
    if isinstance(metadata, str):
        metadata = _loaded(metadata)
    theirs = next((metadata[one] for one in _THEIRS if one in metadata), None) if isinstance(metadata, dict) else None
    if not isinstance(theirs, dict):
        return None
    needs = theirs.get("requires") or {}
    return {"os": theirs.get("os"), **needs} if isinstance(needs, dict) else needs


def _said(error: ErrorDetails) -> str:
    """Return in words what is wrong with a key."""
    path, kind = ".".join(map(str, error["loc"])), error["type"]
    if kind == "extra_forbidden":
        return f"it needs `{error['loc'][-1]}`, of which this version knows nothing; it knows bins, anyBins, env and os"
    wrong = "small letters, digits and single hyphens make a name" if "pattern" in kind else error["msg"].lower()
    return f"`{path}` in the head of {FILE}: {wrong}"
