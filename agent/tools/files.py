"""The tools `read` and `write`: text files and folder listings of the workspace.

Answers are bounded in lines, bytes and length of a line, and so is memory; an error says what was wrong and what is
allowed. What a run in the background writes into memory files is marked, so that it never passes for a person's word;
`agent/prompt/system.md` tells the model what the mark means.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from typing import Literal

from pydantic import Field

from agent.documents import NotRead, is_document, pages_of
from agent.errors import ToolError
from agent.file_names import HEARTBEAT, KEPT
from agent.message import Provenance, ToolOutput, merged
from agent.sandbox.kept import ROOMS
from agent.tools.base import CallContext, P, Parameters, Sink, Tool
from agent.tools.lineage import FileState, Lineage, Origins, state_of
from agent.tools.workspace import IsFolder, Workspace

MAX_LINES = 2000
MAX_BYTES = 30 * 1024
MAX_LINE_BYTES = 4096
MAX_WRITE_CHARACTERS = 1_000_000

_BINARY_PROBE = 8192
# The folder of skills in a workspace.
SKILLS = "skills"
# Returns in which workspace a file of a skill lies, by its path below `skills`; None: where all other files lie. Raises
# ToolError if it may not be read.
SkillHome = Callable[[tuple[str, ...]], Awaitable[Workspace | None]]


class ReadParameters(Parameters):
    """Of `read`."""

    path: str = Field(description="File or folder, relative to the workspace; '.' is the workspace itself.")
    offset: int = Field(default=1, ge=1, description="First line to return, counted from 1.")
    limit: int = Field(default=MAX_LINES, ge=1, le=MAX_LINES, description="How many lines at most.")
    page: int = Field(default=1, ge=1, description="Of a PDF, docx, xlsx or pptx: the page to begin with.")


class FileTool(Tool[P]):
    """Base of the tools that work on files of one workspace."""

    def __init__(self, workspace: Workspace, lineage: Lineage | None = None) -> None:
        """lineage: knows what the files were made from; by default nothing is known of them."""
        self._workspace = workspace
        self._lineage = lineage or Lineage()

    def _unknown(self, path: str) -> tuple[Provenance, ...]:
        """Return the origins of a file of which nothing is known, see `unknown`."""
        return unknown(self._workspace.relative(path))

    def _noted(self, path: str, before: bytes | None, after: bytes, context: CallContext, *, keeps: bool) -> Origins:
        """Persist what a file is made from that is about to be written, see `Lineage.rewritten`."""
        parts = self._workspace.relative(path)
        return self._lineage.rewritten(
            self._workspace.whole(parts), before, after, context.bears(), keeps=keeps, otherwise=unknown(parts)
        )


class ReadTool(FileTool[ReadParameters]):
    """Reads a slice of a text file, or lists a folder."""

    name = "read"
    description = (
        "Read a text file or list a folder of the workspace. Long files come in pieces: go on with offset. "
        "Of PDF and office files you get the text, by page. Images and other binary files cannot be shown."
    )
    parameters = ReadParameters
    parallel_safe = True

    def __init__(
        self, workspace: Workspace, lineage: Lineage | None = None, skill_home: SkillHome | None = None
    ) -> None:
        """lineage: see FileTool. skill_home: None: skills are as all other files."""
        super().__init__(workspace, lineage)
        self._skill_home = skill_home

    async def run(self, parameters: ReadParameters, context: CallContext) -> ToolOutput:
        """Return the lines asked for, and a last line in brackets if there is more."""
        parts, workspace = self._workspace.relative(parameters.path), self._workspace
        of_skill = is_skill(parts)
        if of_skill and self._skill_home:
            workspace = await self._skill_home(parts[1:]) or workspace
            parameters = parameters.model_copy(update={"path": "/".join(parts)})
        output, state, document = await asyncio.to_thread(self._read, parameters, workspace)
        if document:
            output = await _document(document, parameters)
        (origins,) = (await self._lineage.of([state])) if state else (None,)
        if origins is None or of_skill:
            origins = merged((*self._unknown(parameters.path), *(origins or ())))
        return replace(output, origins=origins)

    def _read(self, parameters: ReadParameters, workspace: Workspace) -> tuple[ToolOutput, FileState | None, bytes]:
        """Return the output, which file it is made of, and the document of which it is still to be made."""
        path = parameters.path
        with suppress(IsFolder), workspace.open(path) as file:
            content = file.read()  # of which the lines are taken and the state is told, even if it is changed meanwhile
            state = state_of(workspace, workspace.relative(path), file, content)
            if is_document(content):
                return ToolOutput(text=""), state, content
            if b"\x00" in content[:_BINARY_PROBE]:
                raise ToolError(f"{path}: a binary file of {len(content):,} bytes, not text.")
            return _slice(_lines(BytesIO(content)), parameters, "The file"), state, b""
        listing = workspace.listing(path)
        return _slice(((line.encode(), 0) for line in listing), parameters, "The folder"), None, b""


async def _document(content: bytes, parameters: ReadParameters) -> ToolOutput:
    """Return pages of a document. Raises ToolError."""
    try:
        found = await pages_of(content, parameters.page, MAX_BYTES // 2)
    except NotRead as error:
        raise ToolError(f"{parameters.path}: {error}.") from None
    more = f" Go on with page {found.last + 1}." if found.last < found.count else ""
    text = found.text.encode(errors="replace")[:MAX_BYTES].decode(errors="ignore")
    return ToolOutput(text=f"{text}\n[Pages {found.first} to {found.last} of {found.count}.{more}]")


def _lines(file: BytesIO) -> Iterator[tuple[bytes, int]]:
    """Yield each line without its line end, cut at MAX_LINE_BYTES, with the number of bytes left out."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        left_out = 0
        if not line.endswith(b"\n") and len(line) > MAX_LINE_BYTES:
            while rest := file.readline(MAX_BYTES):
                left_out += len(rest)
                if rest.endswith(b"\n"):
                    left_out -= 1
                    break
        yield line.rstrip(b"\r\n"), left_out


def _slice(lines: Iterator[tuple[bytes, int]], parameters: ReadParameters, what: str) -> ToolOutput:
    first, number, size, more = parameters.offset, 0, 0, False
    taken: list[str] = []
    for number, (line, left_out) in enumerate(lines, 1):
        if number < first:
            continue
        if len(taken) >= parameters.limit or size + len(line) > MAX_BYTES:
            more = True
            break
        size += len(line) + 1
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace").replace("\x00", "�")
        taken.append(text + (f" [… {left_out:,} bytes of this line left out]" if left_out else ""))
    if not taken and number == 0:
        return ToolOutput(text=f"[{what} is empty.]")
    if not taken:
        raise ToolError(f"offset {first}: {what.lower()} has {number:,} lines only.")
    if more:
        last = first + len(taken) - 1
        taken.append(f"[Lines {first:,} to {last:,}. {what} goes on: read with offset {last + 1}.]")
    return ToolOutput(text="\n".join(taken))


class WriteParameters(Parameters):
    """Of `write`."""

    path: str = Field(description="File, relative to the workspace. Missing folders are made.")
    content: str = Field(max_length=MAX_WRITE_CHARACTERS, description="The text to write.")
    mode: Literal["create", "overwrite", "append"] = Field(
        default="create",
        description="create: only when no such file exists; overwrite: replace the whole file; append: add at its end.",
    )


class WriteTool(FileTool[WriteParameters]):
    """Writes a whole text file, or adds to one."""

    name = "write"
    description = (
        "Write a text file in the workspace. By default only a new file is made; to change one that exists, "
        "choose mode overwrite (read it first) or append."
    )
    parameters = WriteParameters
    changes = True

    async def run(self, parameters: WriteParameters, context: CallContext) -> ToolOutput:
        """Write the file; returns whether it was created, replaced or appended to, and its size."""
        content = parameters.content.encode()
        unasked = context.background and is_memory(self._workspace.relative(parameters.path))

        def change(before: bytes | None, after: bytes) -> bytes:
            after = marked(before or b"", after) if unasked else after
            self._noted(parameters.path, before, after, context, keeps=parameters.mode == "append" or unasked)
            return after

        written = await self._workspace.write(parameters.path, content, parameters.mode, change)
        if written.created:
            return ToolOutput(text=f"Created {written.path} ({written.size:,} bytes).")
        if parameters.mode == "append":
            return ToolOutput(
                text=f"Appended {len(content):,} bytes to {written.path} ({written.size:,} bytes in all)."
            )
        return ToolOutput(text=f"Replaced {written.path} ({written.size:,} bytes).")

    async def sink(self, parameters: WriteParameters, context: CallContext) -> Sink:
        """See Tool."""
        return sink_of(self._workspace.relative(parameters.path), self._workspace)


def unknown(path: tuple[str, ...]) -> Origins:
    """Return the origins of a file of which nothing is known; files of the prompt are the operator's own words.

    What lies in the folder of a skill is a skill's, whoever has written it.
    Those have their places: a file of that name anywhere else came from somebody, as with a repository.
    """
    if is_skill(path):
        return (Provenance("skill", path[1]),)
    in_place = is_memory(path) or path[:-1] in ((), *((name,) for name in ROOMS))
    return () if in_place and sink_of(path) in ("remember", "schedule") else (Provenance("file", "/".join(path)),)


def sink_of(path: tuple[str, ...], room: Workspace | None = None) -> Sink:
    """Return where it goes what is written to a path of a room, given by its parts. room: None: the whole workspace.

    Some files are read by later prompts, and those in the rooms of others by them. The workspace holds rooms.
    """
    name = path[-1].upper() if path else ""
    if name == HEARTBEAT.upper() and len(path) == 1:
        return "schedule"
    if is_memory(path) or name in {one.upper() for one in KEPT}:
        return "remember"
    is_whole = room is None or not room.whole(())
    return "send" if is_whole and path[:1] and path[0].casefold() in ROOMS else "room"


def is_skill(path: tuple[str, ...]) -> bool:
    """Whether a path, given by its parts, lies in the folder of a skill. Case is ignored, as on some file systems."""
    return len(path) > 1 and path[0].casefold() == SKILLS


MARK = "<!-- background -->"

_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,}+)(.*)")
_DRAWN = re.compile(r"[\s\-=*_|:`~]*")  # blank lines, rules, and fences without a word


def is_memory(path: tuple[str, ...]) -> bool:
    """Whether a path, given by its parts, is a memory file: MEMORY.md, or Markdown in the folder `memory`.

    Case is ignored, as on some file systems.
    """
    names = [part.casefold() for part in path]
    return names == ["memory.md"] or (names[:1] == ["memory"] and names[-1].endswith(".md"))


def marked(old: bytes, new: bytes) -> bytes:
    """Return the file `new` with the mark after each line that `old` lacks; in a code block, after its first line.

    Lines that moved are not new. A line that lost its mark is new.
    """
    known = Counter(line.strip() for line in _text_lines(old))
    lines = _text_lines(new)
    fence, first = "", 0
    for number, line in enumerate(lines):
        found = _FENCE.fullmatch(line.rstrip())
        marks = first if fence else number
        if found and not fence:
            fence, first = found[1], number
        elif found and found[1].startswith(fence) and not found[2]:
            fence = ""
        if known[line.strip()]:
            known[line.strip()] -= 1
        elif not _DRAWN.fullmatch(line):
            words = lines[marks].rstrip()
            if not words.endswith(MARK):
                lines[marks] = f"{words} {MARK}{lines[marks][len(words) :]}"
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _text_lines(text: bytes) -> list[str]:
    return text.decode("utf-8", "surrogateescape").split("\n")
