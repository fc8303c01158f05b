"""Builds the system prompt, once per transcript: the same bytes for the same values (promise 7 of the design).

Its words are in the `.md` files of this folder. Nothing that changes goes in: messages have the time, and edits of the
workspace show in the next transcript. The sections are in a fixed order, from what holds everywhere to what holds only
in this conversation: identity and channel, files of the workspace, tools, skills, safety, messaging, what the operator
added, and until it has taken place the script of the first meeting. Providers cache the prompt up to its end.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from textwrap import shorten

from agent.fences import unfenced
from agent.message import Provenance, ToolSpec
from agent.workspace_files import WorkspaceFile

_BETWEEN = "\n\n"
# The most characters of the list of skills.
SKILLS_CHARACTERS = 8000


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a system prompt."""

    # The name of the file that it shows, or in a word or two what it is about.
    name: str
    text: str
    # Whether it shows a file of the workspace.
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system prompt. Transcripts store it as JSON, so its fields are only ever added, with defaults."""

    sections: tuple[Section, ...]
    # Whether it has the script of the first meeting.
    first_meeting: bool = False
    # Where the text of the files in it came from, if not from the operator.
    origins: tuple[Provenance, ...] = ()

    @property
    def text(self) -> str:
        """The whole prompt as it is sent."""
        return _BETWEEN.join([section.text for section in self.sections]) + "\n"


def build(
    *,
    name: str,
    tools: tuple[ToolSpec, ...],
    place: str = "in a chat",
    rules: str = "",
    added: str = "",
    files: tuple[WorkspaceFile, ...] = (),
    skills: Sequence[tuple[str, str]] = (),
    in_room: bool = False,
    script: WorkspaceFile | None = None,
) -> Prompt:
    """Return the whole prompt.

    name: of the bot. place: where the conversation is, behind "This conversation is". rules: what holds for messages
    there, and added: what the operator says for this conversation, both as Markdown without a heading, or empty.
    skills: names and descriptions. in_room: whether the conversation has a room instead of the whole workspace. script:
    of the first meeting.
    """

    def sections() -> Iterator[Section]:
        yield Section("identity", Template(_words("identity.md")).substitute(name=name, place=place))
        if files:
            yield Section("about files", _words("room.md" if in_room else "workspace.md"))
            yield from map(_shown, files)
        yield Section("tools", f"## Tools\n{_tools(tools)}")
        if skills:
            yield Section("skills", Template(_words("skills.md")).substitute(list=_skills(skills)))
        yield Section("safety", _words("safety.md"))
        yield Section("messaging", "\n\n".join(filter(None, (_words("messaging.md"), rules.strip()))))
        if added.strip():
            yield Section("operator", f"## From your operator, for this conversation\n{added.strip()}")
        if script is not None:
            yield Section("about the first meeting", _words("first_meeting.md"))
            yield _shown(script)

    return Prompt(tuple(sections()), script is not None)


def _shown(file: WorkspaceFile) -> Section:
    return Section(file.name, f'<file name="{file.name}">\n{unfenced(file.text)}\n</file>', is_file=True)


def _tools(tools: tuple[ToolSpec, ...]) -> str:
    if not tools:
        return "You have none in this conversation: you can answer, and do nothing else. Say so when asked for more."
    # by name alone: what each is for goes with its schema
    return Template(_words("tools.md")).substitute(list=", ".join(f"`{tool.name}`" for tool in tools))


def _skills(skills: Sequence[tuple[str, str]]) -> str:
    """Return a line for each skill within the budget: with shorter descriptions for all, and then without the last."""
    for longest in (1024, 500, 250, 120, 60, 0):
        lines = [f"- `{name}`: {shorten(about, longest, placeholder='…')}" for name, about in skills]
        if sum(map(len, lines)) <= SKILLS_CHARACTERS:
            return "\n".join(lines)
    most = SKILLS_CHARACTERS // max(map(len, lines))
    return "\n".join((*lines[:most], f"- and {len(lines) - most} more, each a folder in `skills/`"))


@functools.cache
def _words(name: str) -> str:
    return (resources.files(__package__) / name).read_text("utf-8").strip()
