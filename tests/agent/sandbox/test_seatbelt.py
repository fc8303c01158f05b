"""The profile of seatbelt, as text: what each level allows, and that no path says anything but itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.sandbox.backends import Seatbelt, profile
from agent.sandbox.base import View
from agent.sandbox.kept import Kept
from agent.shell import Level


@pytest.fixture
def view(room: Path, tmp_path: Path) -> View:
    (tmp_path / "temporary").mkdir()
    return View(
        level="work",
        room=room,
        folder=room,
        environment={"LANG": "C.UTF-8", "DYLD_INSERT_LIBRARIES": "x.dylib"},
        temporary=tmp_path / "temporary",
        kept=Kept(files=(room / "AGENTS.md",), repositories=(room / ".git",), leading=(room / ".git/config",)),
        hidden=(room / "state",),
    )


def lines(view: View, words: str) -> list[str]:
    return [line for line in profile(view).splitlines() if line.startswith(f"({words}")]


@pytest.mark.parametrize("level", ["look", "work", "network"])
def test_nothing_is_allowed_but_what_is_named(view: View, level: Level) -> None:
    view = replace(view, level=level)
    text = profile(view)
    assert text.splitlines()[:2] == ["(version 1)", "(deny default)"]
    assert text.count("(allow default)") == 0
    (written,) = lines(view, "allow file-write*")
    assert (f'(subpath "{view.room}")' in written) == (level != "look")
    assert f'(subpath "{view.temporary}")' in written
    assert written.count("subpath") == (1 if level == "look" else 2)
    read = lines(view, "allow file-read* (subpath")
    assert len(read) == 1
    assert f'(subpath "{view.room}")' in read[0]
    assert '(subpath "/usr")' in read[0]
    assert not [
        path for path in ("/etc", "/var", "/Users", "/private", "/private/etc", "/") if f'(subpath "{path}")' in text
    ]
    assert ("network" in text) == (level == "network")
    assert text.count("(") == text.count(")")


def test_what_is_kept_and_hidden_is_denied_behind_what_is_allowed(view: View) -> None:
    text = profile(view).splitlines()
    room = view.room
    denied = [
        f'(deny file-write* (subpath "{room}/AGENTS.md") (subpath "{room}/.git/config"))',
        f'(deny file-write-unlink file-write-create (literal "{room}/.git"))',
        f'(deny file-read* file-write* (subpath "{room}/state"))',
    ]
    assert text[-3:] == denied, "of two words the later counts"
    bare = replace(view, kept=Kept(), hidden=(), level="look")
    assert [line for line in profile(bare).splitlines() if line.startswith("(deny")] == ["(deny default)"]


def test_a_path_cannot_say_more_than_itself(tmp_path: Path, view: View) -> None:
    room = tmp_path / 'a") (allow default) ("\\'
    room.mkdir()
    text = profile(replace(view, room=room, kept=Kept(), hidden=()))
    quoted = str(room).replace("\\", "\\\\").replace('"', '\\"')
    assert text.count(f'(subpath "{quoted}")') == 2
    assert "\n(allow default" not in text
    outside = quoted_away(text)
    assert "allow default" not in outside
    assert outside.count("(") == outside.count(")")


def quoted_away(text: str) -> str:
    """A profile without what stands in its strings."""
    said, within, escaped = [], False, False
    for character in text:
        if within:
            within, escaped = escaped or character != '"', character == "\\" and not escaped
        elif character == '"':
            within = True
        else:
            said.append(character)
    assert not within
    return "".join(said)


def test_what_is_started_and_with_which_variables(view: View) -> None:
    launch = Seatbelt("/usr/bin/sandbox-exec").launch(view, ("/bin/sh", "-c", "ls"))
    assert launch.argv == ("/usr/bin/sandbox-exec", "-p", profile(view), "/bin/sh", "-c", "ls")
    assert launch.bounds is not None
    assert launch.environment["HOME"] == launch.environment["TMPDIR"] == str(view.temporary)
