"""The tool `edit`: replaces a passage of a text file by another.

The passage must be in the file exactly as given, and only once unless all occurrences are meant. All other bytes stay
as they are, and so do line ends. A mistake of the model changes nothing; the error says what the file has instead.
"""

import difflib
import heapq

from pydantic import Field

from agent.errors import ToolError
from agent.message import Provenance, ToolOutput
from agent.tools.base import CallContext, Parameters, Sink
from agent.tools.files import MAX_WRITE_CHARACTERS, FileTool, is_memory, marked, sink_of
from agent.tools.lineage import FileState

_AROUND = 2  # lines shown before and after a change
_SHOWN_LINES = 30
_SHOWN = 200  # characters shown of a line
_COMPARED_LINES = 5000  # lines of a file that are searched for the most similar one
_COMPARED_CLOSELY = 20
_TOLD = 10  # places whose line numbers are named


class EditParameters(Parameters):
    """Of `edit`."""

    path: str
    old_string: str = Field(min_length=1, max_length=MAX_WRITE_CHARACTERS)
    new_string: str = Field(max_length=MAX_WRITE_CHARACTERS)
    replace_all: bool = False


class EditTool(FileTool[EditParameters]):
    """Replaces text in files of the workspace."""

    name = "edit"
    description = (
        "Replace text in a file, which you have read: old_string must be in it exactly once, white space included; "
        "add lines around it to make it unique, or set replace_all."
    )
    parameters = EditParameters
    changes = True

    async def run(self, parameters: EditParameters, context: CallContext) -> ToolOutput:
        """Return how many places were changed, and the first of them with the lines around it."""
        path, shown, origins, held = parameters.path, "", tuple[Provenance, ...](), b""
        unasked = context.background and is_memory(self._workspace.relative(path))

        def change(before: bytes | None, _: bytes) -> bytes:
            nonlocal shown, origins, held
            before = held = before or b""
            after, places, changed = _edited(before, parameters)
            after = marked(before, after) if unasked else after
            what = "1 place" if places == 1 else f"{places:,} places, of which the first is"
            shown = f"Changed {what}:\n" + _around(after, changed)
            origins = self._noted(path, before, after, context, keeps=True)
            return after

        try:
            await self._workspace.write(path, b"", "change", change)
        except ToolError as error:  # which shows a line of the file
            state = FileState.of_now(self._workspace.whole(self._workspace.relative(path)), held)
            (known,) = await self._lineage.of([state])
            error.origins = self._unknown(path) if known is None else known
            raise
        return ToolOutput(text=shown, origins=origins)

    async def sink(self, parameters: EditParameters, context: CallContext) -> Sink:
        """See Tool."""
        return sink_of(self._workspace.relative(parameters.path), self._workspace)


def _edited(before: bytes, parameters: EditParameters) -> tuple[bytes, int, range]:
    """Return the new file, the number of changed places, and the lines of the first (from 0). Raises ToolError."""
    path, old, new = parameters.path, parameters.old_string.encode(), parameters.new_string.encode()
    if old == new:
        raise ToolError(f"{path}: old_string and new_string are the same; nothing was changed.")
    if b"\x00" in before:
        raise ToolError(f"{path}: a binary file, not text.")
    # The model writes \n whatever the file has.
    windows = before.count(b"\r\n")
    if windows and (windows == before.count(b"\n") or old not in before):
        old, new = (text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for text in (old, new))
    places, at = list[int](), before.find(old)
    while at >= 0 and len(places) <= _TOLD:
        places.append(at)
        at = before.find(old, at + 1)
    if not places:
        raise ToolError(f"{path}: old_string is not in the file. {_nearest(before, parameters.old_string)}")
    lines = [before.count(b"\n", 0, place) + 1 for place in places[:_TOLD]]
    if len(places) > 1 and not parameters.replace_all:
        where = ", ".join(map(str, lines)) + (" and others" if len(places) > _TOLD else "")
        raise ToolError(
            f"{path}: old_string is there {before.count(old):,} times, on lines {where}. "
            "Add lines around it to say which, or set replace_all."
        )
    return before.replace(old, new), before.count(old), range(lines[0] - 1, lines[0] + new.count(b"\n"))


def _around(after: bytes, changed: range) -> str:
    lines = after.decode(errors="replace").replace("\r\n", "\n").split("\n")
    numbers = range(max(0, changed.start - _AROUND), min(len(lines), changed.stop + _AROUND))
    shown = [f"{number + 1}: {lines[number][:_SHOWN]}" for number in numbers[:_SHOWN_LINES]]
    return "\n".join(shown) + ("\n[…]" if len(numbers) > _SHOWN_LINES else "")


def _nearest(before: bytes, old: str) -> str:
    """Say what in the file is most like `old`: the same but for white space, or the line most like its longest line."""
    lines = before.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n")[:_COMPARED_LINES]
    wanted = old.replace("\r\n", "\n").split("\n")
    bare, bare_wanted = (["".join(line.split()) for line in some] for some in (lines, wanted))
    for start in range(len(lines)):
        if bare[start] == bare_wanted[0] and bare[start : start + len(wanted)] == bare_wanted:
            for number, (line, asked) in enumerate(zip(lines[start:], wanted, strict=False), start + 1):
                if line != asked:
                    return f"White space differs: line {number} is {_told(line)}, old_string has {_told(asked)}."
    longest = max(wanted, key=len)[:_SHOWN]
    compared = difflib.SequenceMatcher(b=longest)

    def likeness(line: str) -> float:  # at the most: the real one takes long
        compared.set_seq1(line)
        return compared.quick_ratio()

    likely = heapq.nlargest(_COMPARED_CLOSELY, {line[:_SHOWN]: None for line in lines}, likeness)
    near = difflib.get_close_matches(longest, likely, 1)
    if not near:
        return "Nothing there is like it: read the file again."
    number = next(number for number, line in enumerate(lines, 1) if line[:_SHOWN] == near[0])
    return f"Most like it is line {number}, {_told(near[0])}, for {_told(longest)}: read the file again."


def _told(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "…")
