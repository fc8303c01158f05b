"""The analysis of shell commands."""

from tests.mutants import Fault

_JUDGE = "tests/agent/shell/test_judge.py::test_"
_RULES = "tests/agent/shell/test_rules.py::test_"
_ASKED = f"{_JUDGE}a_person_is_asked_about_what_does_more"

FAULTS = (
    Fault(
        "shell/a-line-continued-in-a-word",
        "agent/shell/words.py",
        'if self._at + 1 >= self._end or self._source[self._at + 1] == "\\n":',
        "if self._at + 1 >= self._end:",
        (f"{_JUDGE}what_may_be_read_in_two_ways_is_asked_about",),
    ),
    Fault(
        "shell/redirections-of-a-list-where-it-began",
        "agent/shell/walk.py",
        "            self._statement(body[0])\n            self._redirects(redirects)\n",
        "            self._redirects(redirects)\n            self._statement(body[0])\n",
        (f"{_JUDGE}the_folder_is_followed_exactly",),
    ),
    Fault(
        "shell/pipelines-behind-a-list-apart",
        "agent/shell/walk.py",
        "        if _ends_in_list(first):\n",
        "        if False:\n",
        (f"{_JUDGE}the_folder_is_followed_exactly",),
    ),
    Fault(
        "shell/options-taken-for-descriptors",
        "agent/shell/walk.py",
        "if number and not (number.isdigit() and ",
        "if number and not (",
        (_ASKED,),
    ),
    Fault(
        "shell/here-documents-not-read",
        "agent/shell/parse.py",
        "if match[4] and _EXPANDS.search(",
        "if match[2] and _EXPANDS.search(",
        (f"{_JUDGE}here_documents_are_text_or_asked_about",),
    ),
    Fault(
        "shell/patterns-may-be-options",
        "agent/shell/words.py",
        'return self.text.startswith("-") if self.text else not self.exact',
        'return self.text.startswith("-")',
        (_ASKED,),
    ),
    Fault(
        "shell/unknown-options-harmless",
        "agent/shell/table.py",
        "            if option not in entry.flags:\n",
        "            if False:\n",
        (_ASKED,),
    ),
    Fault(
        "shell/braces-read-as-text",
        "agent/shell/words.py",
        'if ("," in in_braces or ".." in in_braces) and not self._assigned:',
        "if False:",
        (f"{_JUDGE}words_that_are_known_are_what_the_shell_makes_of_them", _ASKED),
    ),
    Fault(
        "shell/commands-of-the-workspace-trusted",
        "agent/shell/paths.py",
        "return os.path.dirname(binary) in self._folders and not self._below(os.path.realpath(binary))",
        "return True",
        (f"{_JUDGE}a_file_of_the_workspace_is_no_known_command",),
    ),
    Fault(
        "shell/wrappers-of-the-workspace-unwrapped",
        "agent/shell/judge.py",
        'if trusted or name == "time" else None',
        "if True else None",
        (f"{_JUDGE}a_file_of_the_workspace_is_no_known_command",),
    ),
    Fault(
        "shell/writes-through-links",
        "agent/shell/paths.py",
        "if not plain or not stat.S_ISREG(mode):",
        "if not stat.S_ISREG(mode):",
        (f"{_JUDGE}redirections_write_plain_files_of_the_workspace",),
    ),
    Fault(
        "shell/rules-in-any-folder",
        "agent/shell/rules.py",
        "(self.folder and self.folder != folder)",
        "False",
        (f"{_RULES}what_was_granted_is_allowed_and_nothing_beside_it",),
    ),
    Fault(
        "shell/granted-arguments-as-patterns",
        "agent/shell/rules.py",
        'return re.sub(r"([*?\\[])", r"[\\1]", text)',
        "return text",
        (f"{_RULES}a_granted_argument_is_no_pattern",),
    ),
    Fault(
        "shell/inline-code-by-rule",
        "agent/shell/judge.py",
        "        if wrappers.runs_code(base, words):\n",
        "        if False:\n",
        (f"{_RULES}no_rule_covers_what_is_not_known_before",),
    ),
    Fault(
        "shell/variables-followed-when-set-twice",
        "agent/shell/walk.py",
        "if self._top and value.exact and self._followed(name):",
        "if value.exact:",
        (f"{_JUDGE}variables_are_followed_when_they_are_set_once",),
    ),
    Fault(
        "shell/folders-followed-where-they-may-not-change",
        "agent/shell/walk.py",
        "plain = self._top and len(words) == 2",
        "plain = len(words) == 2",
        (f"{_JUDGE}the_folder_is_followed_exactly",),
    ),
    Fault(
        "shell/variables-of-a-group-that-may-not-run",
        "agent/shell/walk.py",
        "            self._maybe(self._statement, body[0])\n",
        "            self._statement(body[0])\n",
        (f"{_JUDGE}the_folder_is_followed_exactly",),
    ),
    Fault(
        "shell/variables-that-the-shell-sets",
        "agent/shell/walk.py",
        "self._named[name] == 1 and _FOLLOWED.fullmatch(name) is not None",
        "self._named[name] == 1",
        (_ASKED,),
    ),
    Fault(
        "shell/patterns-through-links",
        "agent/shell/paths.py",
        "elif entry.is_symlink() and (why :=",
        "elif False and (why :=",
        (_ASKED,),
    ),
    Fault(
        "shell/patterns-go-up-in-rules",
        "agent/shell/rules.py",
        ' and given.split("/").count("..") <= wanted.split("/").count("..")',
        "",
        ("tests/shell/test_corpora.py::test_nothing_of_the_bypass_corpus_is_allowed",),
    ),
    Fault(
        "shell/programs-of-sed-not-read",
        "agent/shell/table.py",
        "        if option in self._entry.programs:\n",
        "        if False:\n",
        (_ASKED,),
    ),
    Fault(
        "shell/patterns-that-become-options",
        "agent/shell/paths.py",
        'if entry.name.startswith("-"):',
        "if False:",
        (f"{_JUDGE}a_pattern_may_become_an_option",),
    ),
)
