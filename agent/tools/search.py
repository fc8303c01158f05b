"""The tools `glob` and `grep`: find files of the workspace by their paths, and lines by what they contain.

Nothing outside the workspace is read, and no link is followed (`Workspace.walk`). Results, bytes and time are bounded
for every expression, because RE2 matches. A cancelled search stops within a moment. Binary files, `.git`, and files
that `.gitignore` names are left out.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Any

from pydantic import Field

from agent.errors import ToolError
from agent.message import Provenance, ToolOutput, merged
from agent.shares import Places
from agent.tools.base import CallContext, P, Parameters, Tool
from agent.tools.files import unknown
from agent.tools.lineage import FileState, Lineage, state_of
from agent.tools.patterns import Rules, chosen, engine, passed_over, rules_in
from agent.tools.workspace import Folder, IsFolder, Workspace, WorkspaceError, is_git, printable

MAX_BYTES = 30 * 1024
MAX_SECONDS = 10.0
MAX_LINE = 300  # bytes shown of a line
AT_ONCE = 4  # searches at once, because each takes a thread that all tools share
_WINDOW = 64 * 1024  # bytes that RE2 searches at once, about
_LONGEST_WINDOW = 1024 * 1024
_BINARY_PROBE = 8192


class _Parameters(Parameters):
    pattern: str
    path: str = "."
    limit: int = Field(default=100, ge=1, le=1000)
    ignored: bool = Field(default=False, description="Files that .gitignore names too.")


class GlobParameters(_Parameters):
    """Of `glob`."""

    pattern: str = Field(min_length=1, max_length=500, description="*.py (at any depth), src/**/*.{ts,tsx}, folder*/")


class GrepParameters(_Parameters):
    """Of `grep`."""

    pattern: str = Field(min_length=1, max_length=1000, description="RE2 regular expression; matches within a line.")
    glob: str = Field(default="", max_length=500, description="Only these files, such as *.py.")
    ignore_case: bool = False
    context: int = Field(default=0, ge=0, le=10, description="Lines around each match.")


class _EnoughError(Exception):
    """The search ends with what it has found; the text says why."""


class _Search:
    """One search in a thread: its bounds, and what it has found so far."""

    def __init__(self, workspace: Workspace, parameters: _Parameters) -> None:
        self.workspace, self.parameters = workspace, parameters
        self.wanted = workspace.relative(parameters.path)
        self.cancelled = threading.Event()
        self.lines: list[str] = []
        # The files of which lines are shown, with their paths below the room.
        self.shown: list[tuple[tuple[str, ...], FileState]] = []
        self.left = parameters.limit
        self._size = 0
        self._ends = time.monotonic() + MAX_SECONDS

    def check(self) -> None:
        """Raise _EnoughError when the search was cancelled or has taken too long. Called often."""
        if self.cancelled.is_set() or time.monotonic() > self._ends:
            raise _EnoughError(f"Stopped after {MAX_SECONDS:g} s")

    def take(self, results: int) -> None:
        """Count results. Raises _EnoughError when there are more than asked for."""
        self.left -= results
        if self.left < 0:
            raise _EnoughError(f"There are more than {self.parameters.limit:,}")

    def add(self, line: str) -> None:
        """Add a line to the result. Raises _EnoughError when the result is too long."""
        self._size += len(line.encode()) + 1
        if self._size > MAX_BYTES:
            raise _EnoughError(f"Cut at {MAX_BYTES // 1024} KB")
        self.lines.append(line)

    def folders(self) -> Iterator[Folder]:
        """Yield the folders from `path` on, each with the names to be searched in it.

        `path` itself is searched even if `.gitignore` names it. Raises _EnoughError and ToolError.
        """
        if any(map(is_git, self.wanted)):
            raise ToolError(f"{self.parameters.path}: .git is not searched.")
        is_file = False
        with suppress(IsFolder), self.workspace.open(self.parameters.path):
            is_file = True
        rules: dict[tuple[str, ...], Rules] = {}
        with closing(self.workspace.walk()) as walk:
            for folder in walk:
                self.check()
                parts, rest = folder.parts, self.wanted[len(folder.parts) :]
                here: Rules = ()
                if not self.parameters.ignored:
                    here = rules[parts] = rules_in(self.workspace, folder, rules.get(parts[:-1], ()))
                if rest:  # on the way there
                    at_file = is_file and len(rest) == 1
                    folder.folders[:], folder.files[:] = ([], rest) if at_file else (rest[:1], [])
                else:
                    folder.folders[:] = [
                        name
                        for name in folder.folders
                        if not is_git(name) and not passed_over(here, (*parts, name), "/")
                    ]
                    folder.files[:] = [name for name in folder.files if not passed_over(here, (*parts, name))]
                if not rest or at_file:
                    yield folder


class _SearchTool(Tool[P]):
    """Runs searches in threads, few at once."""

    parallel_safe = True

    def __init__(self, workspace: Workspace, lineage: Lineage | None = None, places: Places | None = None) -> None:
        """lineage: knows what the files were made from; by default nothing is known of them. places: bounds the
        searches of all tools; by default this tool has its own bound."""
        self._workspace = workspace
        self._lineage = lineage or Lineage()
        self._places = places or Places(AT_ONCE)

    async def _search(self, parameters: _Parameters, find: Callable[[_Search], None]) -> ToolOutput:
        async with self._places.place():
            search = _Search(self._workspace, parameters)
            try:
                await asyncio.to_thread(find, search)
            except _EnoughError as enough:
                search.lines.append(f"[{enough}; name a narrower path or pattern.]")
            finally:
                search.cancelled.set()
            known = await self._lineage.of([state for _, state in search.shown]) if search.shown else ()
            found = [
                unknown(parts) if one is None else one for (parts, _), one in zip(search.shown, known, strict=True)
            ]
            if search.lines and not search.shown:  # names of files
                found = [(Provenance("file", "what was searched"),)]
            origins = merged(one for each in found for one in each)
            return ToolOutput(text="\n".join(search.lines) or "[Nothing found.]", origins=origins)


class GlobTool(_SearchTool[GlobParameters]):
    """Finds files by their paths."""

    name = "glob"
    description = "Find files by path, in order of path, without those that .gitignore names."
    parameters = GlobParameters

    async def run(self, parameters: GlobParameters, context: CallContext) -> ToolOutput:
        """Return one path per line."""
        return await self._search(parameters, _glob)


def _glob(search: _Search) -> None:
    pattern, end = chosen(search.parameters.pattern), "/" * search.parameters.pattern.endswith("/")
    for folder in search.folders():
        for name in folder.folders if end else folder.files:
            search.check()
            parts = (*folder.parts, name)
            if pattern.last("/".join(parts[len(search.wanted) :]) + end):
                search.take(1)
                search.add("/".join(map(printable, parts)) + end)


class GrepTool(_SearchTool[GrepParameters]):
    """Finds lines of text files."""

    name = "grep"
    description = (
        "Search text files, in order of path, without those that .gitignore names: "
        "each file's path, then its matching lines as number:line, context as number-line."
    )
    parameters = GrepParameters

    async def run(self, parameters: GrepParameters, context: CallContext) -> ToolOutput:
        """Each file with its lines."""
        re2, options = engine()
        try:
            pattern = re2.compile(("(?im)" if parameters.ignore_case else "(?m)") + parameters.pattern, options)
        except re2.error as error:
            raise ToolError(
                f"pattern: no regular expression of RE2, which has no look-around and no back-references. {error}"
            ) from None
        return await self._search(parameters, lambda search: _grep(search, parameters, pattern))


def _grep(search: _Search, parameters: GrepParameters, pattern: Any) -> None:
    only, unread = chosen(parameters.glob or "**"), 0
    for folder in search.folders():
        for name in folder.files:
            search.check()
            parts = (*folder.parts, name)
            if not only.last("/".join(parts[len(search.wanted) :]) or name):
                continue
            try:
                with folder.open(name) as file:
                    content = file.read()
                    data = content.replace(b"\r\n", b"\n").removesuffix(b"\n")
                    is_text = b"\x00" not in data[:_BINARY_PROBE]
                    hits = list(islice(_hits(search, data, pattern), search.left + 1)) if is_text else []
                    if hits:
                        search.shown.append((parts, state_of(search.workspace, parts, file, content)))
            except (OSError, WorkspaceError):
                unread += 1
                continue
            if hits:
                _show(search, "/".join(map(printable, parts)), data, hits, parameters.context)
    if unread:
        search.lines.append(f"[Files that could not be read: {unread:,}.]")


def _show(search: _Search, path: str, data: bytes, found: Sequence[tuple[int, int]], context: int) -> None:
    """Add the matching lines of one file to the result, with the lines around them."""
    shown: dict[int, str] = {}
    number, counted = 1, 0
    for start, match in found[: search.left]:
        number, counted = number + data.count(b"\n", counted, start), start
        shown[number] = f"{number}:{_line(data, start, match)}"
        above = below = start
        for away in range(1, context + 1):
            if above > 0:
                above = data.rfind(b"\n", 0, above - 1) + 1
                shown.setdefault(number - away, f"{number - away}-{_line(data, above)}")
            if below >= 0 and (below := data.find(b"\n", below)) >= 0:
                below += 1
                shown.setdefault(number + away, f"{number + away}-{_line(data, below)}")
    for place, number in enumerate(sorted(shown)):
        if place == 0:
            search.add(f"\n{path}" if search.lines else path)
        elif context and number - 1 not in shown:
            search.add("--")
        search.add(shown[number])
    search.take(len(found))


def _hits(search: _Search, data: bytes, pattern: Any) -> Iterator[tuple[int, int]]:
    """Yield for each matching line where it begins and where its first match begins.

    A line is searched in pieces of at most a megabyte.
    """
    at = 0
    while data and at <= len(data):
        search.check()
        end = data.find(b"\n", at + _WINDOW, at + _LONGEST_WINDOW)
        if end < 0:
            end = min(len(data), at + _LONGEST_WINDOW)
        while at <= end and (found := pattern.search(data, at, end)):
            yield data.rfind(b"\n", 0, found.start()) + 1, found.start()
            at = (data.find(b"\n", found.start()) + 1) or len(data) + 1
        at = max(at, end + (data[end : end + 1] in (b"", b"\n")))


def _line(data: bytes, start: int, match: int = 0) -> str:
    """Return the line that begins at `start`; of a long line only the text around the match."""
    end = data.find(b"\n", start)
    end = len(data) if end < 0 else end
    first = max(start, min(match - MAX_LINE // 3, end - MAX_LINE))
    text = data[first : min(end, first + MAX_LINE)].decode(errors="replace").replace("\x00", "�")
    return "…" * (first > start) + text + "…" * (first + MAX_LINE < end)
