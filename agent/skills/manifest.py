"""The head of a `SKILL.md`: what a skill is for, what it needs, and which tools it means to use.

The format is the published one of Agent Skills: YAML between two lines `---`, then Markdown. What a skill needs stands
in `requires`, or where OpenClaw's skills have it, in `metadata.openclaw`.
"""

import re
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from agent.fences import harmless

FILE = "SKILL.md"
# The most bytes of a SKILL.md.
MAX_BYTES = 256 * 1024
_HEAD = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
# A name with what it is limited to in parentheses, as `Bash(git add:*)`.
_TOOL = re.compile(r"([^\s,()]+)(?:\([^)]*\))?")
# Names of tools in skills that were written for Claude Code, where ours differ in more than case.
_OURS = {"bash": "exec", "webfetch": "web_fetch", "websearch": "web_search"}
_SYSTEMS = {"macos": "darwin", "mac": "darwin", "windows": "win32"}


class SkillError(Exception):
    """A skill cannot be used; the text says why."""


def _listed(value: object) -> object:
    return value.split() if isinstance(value, str) else value


def _tools(value: object) -> object:
    text = value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else ""
    names = [found[1].lower() for found in _TOOL.finditer(text)]
    return tuple(_OURS.get(name, name) for name in names) if isinstance(value, str | list) else value


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
    license: str = ""
    compatibility: Annotated[str, StringConstraints(max_length=500)] = ""
    # The tools that it means to use; None: it does not say. It never gets more than there are without it.
    tools: Annotated[tuple[str, ...] | None, BeforeValidator(_tools)] = Field(None, validation_alias="allowed-tools")
    metadata: dict[str, Any] = {}
    requires: Requires = Requires()

    @property
    def line(self) -> str:
        """The description on one line, without what could pass for words of the service."""
        return " ".join(harmless(self.description).split())


def parse(text: str) -> Manifest:
    """Return the head of a SKILL.md. Raises SkillError."""
    from ruamel.yaml import YAML  # most workspaces have no skill
    from ruamel.yaml.error import YAMLError

    found = _HEAD.match(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    if found is None:
        raise SkillError(f"{FILE} begins with no head between two lines `---`")
    try:
        head = YAML(typ="safe", pure=True).load(found[1])
        if not isinstance(head, dict):
            raise SkillError(f"the head of {FILE} is no mapping")
        metadata = head.get("metadata")
        theirs = metadata.get("openclaw") if isinstance(metadata, dict) else None
        if isinstance(theirs, dict) and "requires" not in head:
            systems = {"os": theirs["os"]} if "os" in theirs else {}
            head["requires"] = {**systems, **(theirs.get("requires") or {})}
        return Manifest.model_validate(head)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise SkillError(f"`{key}` in the head of {FILE}: {first['msg'].lower()}") from None
    except (YAMLError, RecursionError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SkillError(f"the head of {FILE} is no YAML: {reason}") from None
