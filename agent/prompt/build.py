"""Builds the system prompt, once per transcript: the same bytes for the same values (promise 7 of the design).

Its words are in the `.md` files of this folder. Nothing that changes goes in: messages have the time, and edits of the
workspace show in the next transcript.
"""

import functools
from importlib import resources
from string import Template

from agent.message import ToolSpec
from agent.workspace_files import WorkspaceFile


def build(
    *,
    name: str,
    tools: tuple[ToolSpec, ...],
    channel: str = "",
    files: tuple[WorkspaceFile, ...] = (),
    in_room: bool = False,
) -> str:
    """Return the whole prompt.

    name: of the bot. channel: rules of the channel as Markdown without a heading, or empty. in_room: whether the
    conversation has a room instead of the whole workspace.
    """
    parts = [Template(_words("system.md")).substitute(name=name, tools=_tools(tools))]
    if channel.strip():
        parts.append(f"## This conversation\n{channel.strip()}")
    if files:
        parts.append(_words("room.md" if in_room else "workspace.md"))
        parts += [f'<file name="{file.name}">\n{file.text}\n</file>' for file in files]
    return "\n\n".join(parts) + "\n"


def _tools(tools: tuple[ToolSpec, ...]) -> str:
    if not tools:
        return "You have none in this conversation: you can answer, and do nothing else. Say so when asked for more."
    listed = "\n".join(f"- `{tool.name}`: {_first_sentence(tool.description)}" for tool in tools)
    return Template(_words("tools.md")).substitute(list=listed)


def _first_sentence(description: str) -> str:
    """Return the first sentence for the list of tools; the model gets the whole description with the schema."""
    return description.partition(". ")[0].rstrip(".") + "."


@functools.cache
def _words(name: str) -> str:
    return (resources.files(__package__) / name).read_text("utf-8").strip()
