"""Patterns of paths as in `.gitignore`, and which files of a repository git ignores.

RE2 matches in time that is linear in the length of a path, because patterns and file names may come from strangers.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from agent.errors import ToolError
from agent.tools.workspace import Folder, Workspace, WorkspaceError

MAX_ALTERNATIVES = 100
_MAX_RULES = 32 * 1024  # bytes of a .gitignore that are read
_BRACES = re.compile(r"\{([^{},]*+,[^{}]*+)\}")


@cache
def engine() -> tuple[Any, Any]:
    """Return RE2 and its options. It is imported at the first search, because it takes some MiB of memory."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True  # no match spans two lines
    options.max_mem = 2 * 1024 * 1024  # bounds the time of one step of a match as well
    return re2, options


class Patterns:
    """Patterns of which the last that matches a path counts. They match a folder itself, not what is below it."""

    def __init__(self, lines: Iterable[str]) -> None:
        """lines: of a `.gitignore`; lines that are no patterns are ignored."""
        from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # takes 50 ms, and is needed by searches only

        rules = list[tuple[str, bool]]()
        for line in lines:
            with suppress(ValueError):
                regex, positive = GitIgnoreSpecPattern.pattern_to_regex(line)
                if regex is not None:
                    rules.append((_of_itself(regex), bool(positive)))
        self._sets = _compiled(rules)

    def last(self, path: str) -> bool | None:
        """Whether the last pattern that matches has no `!`; None: no pattern matches. Paths of folders end with "/"."""
        text = path.encode(errors="replace")
        for matching, positive in reversed(self._sets):
            if found := matching.Match(text):
                return bool(positive[max(found)])
        return None


def _compiled(rules: Sequence[tuple[str, bool]]) -> list[tuple[Any, list[bool]]]:
    """Compile expressions to as few RE2 sets as its memory allows, each with which of its expressions are positive."""
    re2, options = engine()
    found, positive = re2.Set.SearchSet(options), list[bool]()
    for regex, is_positive in rules:
        with suppress(re2.error):
            found.Add(regex)
            positive.append(is_positive)
    try:
        found.Compile()
    except re2.error:
        half = len(rules) // 2
        return [*_compiled(rules[:half]), *_compiled(rules[half:])] if half else []
    return [(found, positive)] if positive else []


# The ignore rules that apply in a folder, the outermost file first, each with the depth of its folder.
Rules = tuple[tuple[int, Patterns], ...]


def chosen(pattern: str) -> Patterns:
    """Compile the pattern of a tool's parameter, in which `{a,b}` means alternatives. Raises ToolError."""
    done, todo = list[str](), [pattern.removeprefix("./")]
    while todo:
        one = todo.pop()
        if braces := _BRACES.search(one):
            todo += [one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(",")]
        else:
            done.append("\\" + one if one[:1] in ("!", "#") else one)
        if len(done) + len(todo) > MAX_ALTERNATIVES:
            raise ToolError(f"The pattern has more than {MAX_ALTERNATIVES} alternatives in its braces.")
    if ".." in pattern.split("/") or not any(part.strip("/ ") for part in done):
        raise ToolError("A pattern is one of paths below `path`, such as *.py or src/**/test_*.{ts,tsx}.")
    return Patterns(done)


def rules_in(workspace: Workspace, folder: Folder, above: Rules) -> Rules:
    """Return the rules of a folder. A folder with a `.git` is a repository, to which no rules from above apply."""
    depth, own = len(folder.parts), list[str]()
    if ".git" in folder.folders or ".git" in folder.files:
        above = ()
        own += _lines(workspace, "/".join((*folder.parts, ".git/info/exclude")))
    if ".gitignore" in folder.files:
        own += _lines(workspace, "/".join((*folder.parts, ".gitignore")))
    return (*above, (depth, Patterns(own))) if own else above


def passed_over(rules: Rules, parts: tuple[str, ...], end: str = "") -> bool:
    """Whether git ignores a file, or a folder if `end` is a slash."""
    for depth, patterns in reversed(rules):
        if (ignored := patterns.last("/".join(parts[depth:]) + end)) is not None:
            return ignored
    return False


def _lines(workspace: Workspace, path: str) -> list[str]:
    try:
        with workspace.open(path) as file:
            return file.read(_MAX_RULES).decode("utf-8-sig", errors="replace").splitlines()
    except WorkspaceError:
        return []


def _of_itself(regex: str) -> str:
    """Change the library's expression so that it does not match what is below a matching folder."""
    regex = regex.replace("(?:(?P<ps_d>/)|$)", "/?$").replace("(?P<ps_d>/)", "/$")
    return regex + "." if regex.endswith("/") else regex
