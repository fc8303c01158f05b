"""Skills: which the model is told of, what unloads one, what narrows a turn, and what is not installed."""

from tests.mutants import Fault

_SKILLS = "tests/bot/skills/test_skills.py::test_"
_INSTALL = "tests/bot/skills/test_install.py::test_"

FAULTS = (
    Fault(
        "skills/no-hook-is-asked",
        "bot/cli/skills.py",
        ", confirm, hooks.may_install)",
        ", confirm)",
        (f"{_INSTALL}a_hook_may_refuse_an_install",),
    ),
    Fault(
        "skills/read-as-a-plain-file",
        "unknown",
        'return (Provenance("skill", path[1]),)',
        "return ()",
        (f"{_SKILLS}a_skill_is_listed_read_and_not_trusted",),
    ),
    Fault(
        "skills/known-file-is-trusted",
        "ReadTool.run",
        "if origins is None or of_skill:",
        "if origins is None:",
        (f"{_SKILLS}what_the_model_has_written_into_a_skill_is_not_trusted",),
    ),
    Fault(
        "skills/new-one-is-used-unseen",
        "Shelf._why_not",
        'unpinned = "" if pin == one.digest',
        'unpinned = "" if pin in (None, one.digest)',
        (f"{_SKILLS}without_skills_nothing_is_said_and_the_start_is_noted",),
    ),
    Fault(
        "skills/first-start-is-not-noted",
        "SkillRows.begin",
        'rows.set_value(db, *_BEGUN, "1")',
        "pass",
        (f"{_SKILLS}without_skills_nothing_is_said_and_the_start_is_noted",),
    ),
    Fault(
        "skills/changed-one-is-read",
        "Shelf.home",
        "if owned and name in self.changed:",
        "if False:",
        (f"{_SKILLS}a_changed_skill_is_unloaded_said_once_and_comes_back_when_accepted",),
    ),
    Fault(
        "skills/changed-one-stays-in-the-list",
        "Shelf.sign",
        "return (*said, *self.changed)",
        "return (*said,)",
        (f"{_SKILLS}a_changed_skill_is_unloaded_said_once_and_comes_back_when_accepted",),
    ),
    Fault(
        "skills/only-its-head-is-pinned",
        "digest",
        "sorted(files.items())",
        "[(FILE, files[FILE])]",
        (f"{_SKILLS}a_changed_skill_is_unloaded_said_once_and_comes_back_when_accepted",),
    ),
    Fault(
        "skills/list-changes-within-a-transcript",
        "Shelf.sign",
        "return (*said, *self.changed)",
        "return (*said, *self.changed, *self._found)",
        (f"{_SKILLS}a_list_stays_for_its_transcript",),
    ),
    Fault(
        "skills/guests-have-them-all",
        "Shelf._is_given",
        "and (owned or name in self.settings.guests)",
        "",
        (f"{_SKILLS}the_configuration_chooses_by_name_channel_and_for_guests",),
    ),
    Fault(
        "skills/channel-is-not-asked",
        "Shelf._is_given",
        "name in on_channel and",
        "",
        (f"{_SKILLS}the_configuration_chooses_by_name_channel_and_for_guests",),
    ),
    Fault(
        "skills/unknown-needs-are-passed-over",
        "Requires",
        'extra="forbid"',
        'extra="ignore"',
        (f"{_SKILLS}what_is_missing_keeps_a_skill_out_and_is_said",),
    ),
    Fault(
        "skills/nothing-is-narrowed",
        "Permissions._decided",
        "all(matches(tool.name, one) for one in narrowed)",
        "True",
        (
            f"{_SKILLS}a_skill_comes_with_the_words_and_narrows_the_tools_of_that_turn_alone",
            f"{_SKILLS}a_narrowed_turn_stays_narrowed_when_it_is_resumed",
        ),
    ),
    Fault(
        "skills/words-of-a-skill-are-the-owners",
        "bot/skills/commands.py",
        "extra_context=context, origins=origins, tools",
        "extra_context=context, tools",
        (f"{_SKILLS}a_skill_comes_with_the_words_and_narrows_the_tools_of_that_turn_alone",),
    ),
    Fault(
        "skills/path-leaves-the-folder",
        "_safe",
        'or ".." in parts',
        "",
        (f"{_INSTALL}what_is_refused_leaves_nothing_behind",),
    ),
    Fault(
        "skills/link-in-a-zip",
        "_of_zip",
        "not in (0, stat.S_IFREG)",
        "not in (0, stat.S_IFREG, stat.S_IFLNK)",
        (f"{_INSTALL}what_is_refused_leaves_nothing_behind",),
    ),
    Fault(
        "skills/installed-without-a-question",
        "install.confirm",
        "if yes:",
        "if True:",
        (f"{_INSTALL}without_yes_and_a_terminal_nothing_is_installed",),
    ),
    Fault(
        "skills/something-else-is-installed",
        "bot/skills/install.py",
        "if digest(read(aside)) != digest(files):",
        "if False:",
        (f"{_INSTALL}what_changes_while_it_is_looked_at_is_not_installed",),
    ),
    Fault(
        "skills/guard-that-fails-lets-through",
        "bot/skills/install.py",
        'refusal = f"what guards installs has failed ({type(error).__name__}: {error})"',
        'refusal = ""',
        (f"{_INSTALL}nothing_is_left_of_what_is_not_confirmed_or_refused",),
    ),
)
