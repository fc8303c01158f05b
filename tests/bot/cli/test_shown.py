"""How far terminals have shown their conversation: shared, never set back, and no harm where it cannot be written."""

import stat
from pathlib import Path

import pytest

from bot.cli.terminal.conversation import ShownPosition


def test_what_others_have_shown_stays(tmp_path: Path) -> None:
    file = tmp_path / "shown"
    one, other = ShownPosition(file), ShownPosition(file)
    assert one.read() == 0
    one.note(7)
    other.note(3)
    assert one.read() == other.read() == 7
    other.note(12)
    assert one.read() == 12
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_another_store_begins_anew(tmp_path: Path) -> None:
    shown = ShownPosition(tmp_path / "shown")
    shown.note(700)
    shown.note(0, anew=True)
    assert shown.read() == 0


@pytest.mark.parametrize("row", [b"", b"x y\n", b"\xff\n"])
def test_a_file_of_something_else_is_nothing(tmp_path: Path, row: bytes) -> None:
    (tmp_path / "shown").write_bytes(row)
    shown = ShownPosition(tmp_path / "shown")
    assert shown.read() == 0
    shown.note(7)
    assert shown.read() == 7


def test_what_cannot_be_written_is_forgotten(tmp_path: Path) -> None:
    shown = ShownPosition(tmp_path / "none" / "shown")
    shown.note(7)
    assert shown.read() == 0
