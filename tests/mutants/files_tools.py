"""Tools for files: nothing outside is touched, nothing inside is changed by mistake, and no search goes on for ever."""

from tests.mutants import Fault

_EDIT = "tests/agent/tools/test_files.py::test_"
_SEARCH = "tests/agent/tools/test_search.py::test_"
_ESCAPES = "tests/agent/tools/test_escapes.py::test_"
_OVERFLOW = "tests/agent/tools/test_output.py::test_"

FAULTS = (
    Fault(
        "files_tools/links-followed",
        "agent/tools/workspace.py",
        "_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC",
        "_FLAGS = os.O_CLOEXEC",
        (f"{_ESCAPES}no_path_leads_out",),
    ),
    Fault(
        "files_tools/walk-follows-links",
        "_walk",
        "below = os.open(name, _FOLDER, dir_fd=fd)",
        "below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)",
        (f"{_ESCAPES}a_folder_that_became_a_link_is_not_gone_into",),
    ),
    Fault(
        "files_tools/git-written",
        "Workspace.write_now",
        "        if any(map(is_git, parts)):\n",
        "        if False:\n",
        (f"{_ESCAPES}nothing_is_written_that_git_obeys",),
    ),
    Fault(
        "files_tools/git-by-one-spelling",
        "is_git",
        'visible.casefold().rstrip(". ") in',
        "visible in",
        (f"{_ESCAPES}nothing_is_written_that_git_obeys",),
    ),
    Fault(
        "files_tools/edit-makes-files",
        "Workspace.write_now",
        'create=mode != "change"',
        "create=True",
        (f"{_EDIT}what_is_not_there_is_not_made",),
    ),
    Fault(
        "files_tools/edit-takes-the-first-of-several",
        "_edited",
        "len(places) > 1 and not parameters.replace_all",
        "len(places) > 9 and not parameters.replace_all",
        (f"{_EDIT}what_is_replaced",),
    ),
    Fault(
        "files_tools/edit-mixes-line-ends",
        "_edited",
        '.replace(b"\\r\\n", b"\\n").replace(b"\\n", b"\\r\\n")',
        '.replace(b"\\r\\n", b"\\n")',
        (f"{_EDIT}what_is_replaced",),
    ),
    Fault(
        "files_tools/edit-unmarked",
        "EditTool.run.change",
        "marked(before, after) if unasked else after",
        "after",
        (f"{_EDIT}memory_is_marked_in_the_background_alone",),
    ),
    Fault(
        "files_tools/ignore-rules-from-outside-a-repository",
        "rules_in",
        "        above = ()\n",
        "",
        (f"{_SEARCH}what_git_ignores_is_left_out_unless_it_is_asked_for",),
    ),
    Fault(
        "files_tools/outer-rules-win",
        "passed_over",
        "in reversed(rules):",
        "in rules:",
        (f"{_SEARCH}what_git_ignores_is_left_out_unless_it_is_asked_for",),
    ),
    Fault(
        "files_tools/patterns-match-what-is-below",
        "_of_itself",
        '.replace("(?P<ps_d>/)", "/$")',
        "",
        (f"{_SEARCH}ignores_what_git_ignores",),
    ),
    Fault(
        "files_tools/matches-go-over-lines",
        "engine",
        "options.never_nl = True",
        "options.never_nl = False",
        (f"{_SEARCH}grep_matches_line_by_line",),
    ),
    Fault(
        "files_tools/cancelled-search-goes-on",
        "_SearchTool._search",
        "                search.cancelled.set()\n",
        "                pass\n",
        (f"{_SEARCH}a_search_ends_when_its_time_is_up_or_nobody_waits[cancelled]",),
    ),
    Fault(
        "files_tools/results-not-kept-whole",
        "Spill.add",
        "self._pending += self._head + self._tail",
        "self._pending += self._tail",
        (f"{_OVERFLOW}output_in_pieces_is_all_there_whenever_it_is_asked_for",),
    ),
    Fault(
        "files_tools/old-results-stay",
        "_make_room",
        "number >= MAX_FILES or ",
        "",
        (f"{_OVERFLOW}old_results_go_and_nothing_else",),
    ),
)
