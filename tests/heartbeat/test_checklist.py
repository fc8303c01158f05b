"""HEARTBEAT.md: what it says, whoever wrote it and however."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartbeat.checklist import Checklist, Mistake, Task, is_empty, read

INBOX = Task("inbox", 1_800_000, "Look for urgent mail.")
HOURLY = Task("hourly", 3_600_000, "Say the hour.")
ENTRY = "  - name: inbox\n    interval: 30m\n    prompt: Look for urgent mail.\n"
SECOND = "  - name: hourly\n    interval: 1h\n    prompt: Say the hour.\n"

FORMS = {
    "plain": f"tasks:\n{ENTRY}{SECOND}",
    "no indentation": "tasks:\n- name: inbox\n  interval: 30m\n  prompt: Look for urgent mail.\n"
    "\n- name: hourly\n  interval: 1h\n  prompt: Say the hour.\n",
    "a fence": f"```yaml\ntasks:\n{ENTRY}{SECOND}```\n",
    "an indented fence": f"  ```yaml\n  tasks:\n{ENTRY}{SECOND}  ```\n",
    "carriage returns and a mark": "\ufeff" + f"tasks:\n{ENTRY}{SECOND}".replace("\n", "\r\n"),
    "tabs": "tasks:\n\t- name: inbox\n\t\tinterval: 30m\n\t\tprompt: Look for urgent mail.\n"
    "\t-\tname: hourly\n\t\tinterval: 1h\n\t\tprompt: Say the hour.",
    "quotes, remarks, any order": 'tasks: # the list\n  # first\n  - prompt: "Look for urgent mail."  # every time\n'
    "    interval: '30m' # often\n\n    name: inbox\n# second\n  - interval: 1h # not more\n    Name : \"hourly\"\n"
    "    prompt: 'Say the hour.'\n",
    "a dash alone": f"tasks:\n  -\n    name: inbox\n    interval: 30m\n    prompt: Look for urgent mail.\n{SECOND}",
    "prompts of several lines": "tasks:\n  - name: inbox\n    prompt: >-\n      Look for\n      urgent mail.\n"
    "    interval: 30m\n  - name: hourly\n    prompt: Say\n      the hour.\n    interval: 60m\n",
    "an uneven list": "tasks:\n- name: inbox\n  interval: 30m\n  prompt: Look for urgent mail.\n" + SECOND,
    "two blocks": f"tasks:\n{ENTRY}\nand\n\ntasks:\n{SECOND}",
    "comments": f"<!-- tasks:\n{SECOND} -->\ntasks:\n{ENTRY}<!-- x -->\n{SECOND}<!-- never closed\ntasks:\n{ENTRY}",
}


@pytest.mark.parametrize("form", FORMS)
def test_tasks_are_read_in_any_form(form: str) -> None:
    found = read(FORMS[form])
    assert (found.tasks, found.mistakes) == ((INBOX, HOURLY), ())
    assert found.notes == ("and" if form == "two blocks" else "")


def test_notes_stand_beside_tasks() -> None:
    text = (
        f"# Mine\n\n- Is the door shut?\n<!-- not\nthis -->\ntasks:\n{ENTRY}\n\n## Also\n- name them all\n  - twice\n"
    )
    assert read(text) == Checklist(
        "# Mine\n\n- Is the door shut?\n\n\n\n\n## Also\n- name them all\n  - twice", (INBOX,), ()
    )
    assert read(f"tasks:\n{ENTRY}Free words.\n{SECOND}").notes == f"Free words.\n{SECOND}".strip()
    assert read(f"tasks:\n{ENTRY}\n- a list of notes\n").notes == "- a list of notes"


def test_a_prompt_keeps_its_own_lines_and_signs() -> None:
    text = (
        "tasks:\n  - name: a\n    interval: 1d\n    prompt: |\n      # Do: this\n\n      - one # and\n        - two\n"
        '  - name: b\n    interval: 90s\n    prompt: Look at #12: is it "done"?\n'
        '  - name: c\n    interval: 1s\n    prompt: "Say \\"hi\\" # twice"\n'
        "  - name: d\n    prompt:\n      - the door\n      - the window\n    interval: 1s\n"
    )
    assert read(text).tasks == (
        Task("a", 86_400_000, "# Do: this\n\n- one # and\n  - two"),
        Task("b", 90_000, 'Look at #12: is it "done"?'),
        Task("c", 1000, 'Say "hi" # twice'),
        Task("d", 1000, "- the door\n- the window"),
    )


MISTAKES = {
    "  - name: x\n    interval: often\n    prompt: y\n": (3, "`often` is no interval"),
    "  - name: x\n    interval: 30\n    prompt: y\n": (3, "`30` is no interval"),
    "  - name: x\n    interval: 0s\n    prompt: y\n": (3, "`0s` is no interval"),
    "  - interval: 1h\n    prompt: y\n": (2, "This task lacks its name."),
    "  - name: ''\n    interval: 1h\n    prompt:\n": (2, "This task lacks its name and prompt."),
    "  - name: x\n    interval: 1h\n    name: z\n    prompt: y\n": (4, "`name` stands twice"),
    "  - name: inbox\n    interval: 1h\n    prompt: y\n": (2, 'There is a task "inbox" already'),
    f"  - name: {'x' * 81}\n    interval: 1h\n    prompt: y\n": (2, "A name has at most 80 characters."),
    "  - water the plants\n": (2, "`water the plants` is not `name: …`"),
    "  - {name: x, interval: 1h, prompt: y}\n": (2, "is not `name: …`"),
    "  - name: x\n    interval: 1h\n    prompt: y\n   and so on\n": (5, "`and so on` is not `name: …`"),
}


@pytest.mark.parametrize("entry", MISTAKES)
def test_a_faulty_entry_takes_no_other_with_it(entry: str) -> None:
    line, cause = MISTAKES[entry]
    twice = "already" in cause
    found = read(f"tasks:\n{ENTRY if twice else ''}{entry}{'' if twice else ENTRY}{SECOND}")
    assert found.tasks == (INBOX, HOURLY)
    (mistake,) = found.mistakes
    assert mistake.line == line + 3 * twice
    assert cause in mistake.cause


def test_what_a_task_does_not_need_is_told_and_the_task_runs() -> None:
    found = read(f"x\n\ntasks:\n  when: now\n{ENTRY}    priority:\n      - high\n{SECOND}")
    assert found.tasks == (INBOX, HOURLY)
    assert found.mistakes == (
        Mistake(4, "A task begins with `- name: …`."),
        Mistake(8, "`priority` is not known here; allowed: name, interval, prompt."),
    )


def test_lines_are_counted_as_they_stand_in_the_file() -> None:
    entry = "  - name: x\n    prompt: y\n"
    for before in ("<!-- a\nb\n-->\n", "\r\n\r\n\r\n", "# a\n\n- b\n", f"tasks:\n{entry}"):
        assert read(f"{before}tasks:\n{entry}").mistakes[-1].line == 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeff# Title\r\n\r\n",
        "# A\n## B #\n###\n",
        "-\n*\n+\n1.\n2)\n",
        "- [ ]\n- [x]\n* [X]  \n",
        "<!-- one -->\n<!-- two\nlines -->",
        "<!-- never closed\n- look",
        "```\n```\n~~~yaml\n~~~",
        "---\n* * *\n___\n===",
        ">\n",
        "tasks:\n",
        "```yaml\ntasks: []\n```",
    ],
)
def test_what_holds_nothing_is_empty(text: str) -> None:
    assert read(text) == Checklist("", (), ())
    assert is_empty(text) or "tasks" in text


@pytest.mark.parametrize("text", ["x", "#TODO", "- [ ] x", "1. x", "> x", "**", "<!-- a -->b", "--", "```sh\nls\n```"])
def test_what_says_something_is_not_empty(text: str) -> None:
    assert not is_empty(f"# Title\n\n{text}\n")
    assert read(text).notes != ""


LINES = """tasks:
tasks: []
- name: a
  - name: b
    interval: 1h
  interval: x
  prompt: y
    prompt: |
    prompt: >
      more
- item
-
# H
```yaml
```
<!--
-->

\t- name: c
words
    name: "
  other: 1""".splitlines()


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(LINES), max_size=25).map("\n".join)))
def test_any_file_is_read(text: str) -> None:
    found = read(text)
    assert found.notes == "" or not is_empty(found.notes)
    assert len({task.name for task in found.tasks}) == len(found.tasks)
    assert all(task.name and task.prompt and task.interval_ms >= 1000 for task in found.tasks)
    assert all(1 <= mistake.line <= text.count("\n") + text.count("\r") + 1 for mistake in found.mistakes)
    assert len(found.tasks) + len(found.mistakes) <= len(text.splitlines()) + 1


@given(
    st.lists(st.sampled_from(["bad", "good"]), max_size=6),
    st.sampled_from(["", "# Notes\n- look\n", "\n\n", "```yaml\n"]),
    st.sampled_from(["", "\n- a note\n", "## More\nwords\n", "<!-- x -->"]),
)
def test_good_entries_run_whatever_stands_around_them(kinds: list[str], before: str, after: str) -> None:
    entries = [
        f"  - name: t{n}\n    interval: {n + 1}m\n    prompt: {'p' if kind == 'good' else ''}\n"
        for n, kind in enumerate(kinds)
    ]
    found = read(f"{before}tasks:\n{''.join(entries)}{after}")
    assert [task.name for task in found.tasks] == [f"t{n}" for n, kind in enumerate(kinds) if kind == "good"]
    first = before.count("\n") + 2
    assert [one.line for one in found.mistakes] == [first + 3 * n for n, kind in enumerate(kinds) if kind == "bad"]


@pytest.mark.parametrize(
    "text",
    [
        "<!--" * 50_000,
        "tasks:" + " " * 200_000 + "x",
        "tasks:\n" + "- name: a\n" * 20_000,
        "tasks:\n  - name: a\n    prompt: " + '"' * 100_000 + " #",
        "```\n" * 50_000 + "x",
        "-" + " " * 200_000 + "x",
        "- - " * 50_000 + "x",
        "tasks:\n" * 50_000,
        "tasks:\n" + "#\n" * 50_000,
        "tasks:\n- " + "a" * 100_000 + " " * 100_000 + "b",
    ],
)
def test_hostile_files_take_no_time(text: str) -> None:
    assert read(text).tasks == ()
