"""The stand-ins' own tests run when something changed that they look at, and are left out otherwise."""

import ast
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.counts import standins

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / standins.FOLDER
    (folder / "certificates").mkdir(parents=True)
    (folder / "server.py").write_text("1")
    (folder / "test_server.py").write_text("2")
    (folder / "certificates" / "page.crt").write_text("3")
    return tmp_path


def test_they_are_left_out_once_they_have_passed(checkout: Path) -> None:
    assert not standins.left_out(checkout, {})
    assert standins.note_passed(checkout)
    assert standins.left_out(checkout, {})
    assert not standins.note_passed(checkout)


@pytest.mark.parametrize("environ", [{"STANDINS": "all"}, {"HYPOTHESIS_PROFILE": "soak"}])
def test_they_run_where_somebody_wants_it(checkout: Path, environ: dict[str, str]) -> None:
    standins.note_passed(checkout)
    assert not standins.left_out(checkout, environ)


@pytest.mark.parametrize("name", ["server.py", "test_server.py", "certificates/page.crt", "new.py"])
def test_they_run_after_a_change_of_a_file(checkout: Path, name: str) -> None:
    standins.note_passed(checkout)
    (checkout / standins.FOLDER / name).write_text("changed")
    assert not standins.left_out(checkout, {})


def test_they_run_after_a_file_is_gone_or_has_another_name(checkout: Path) -> None:
    standins.note_passed(checkout)
    (checkout / standins.FOLDER / "server.py").rename(checkout / standins.FOLDER / "service.py")
    assert not standins.left_out(checkout, {})


def test_they_run_after_a_library_has_another_version(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standins.note_passed(checkout)
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0" if name == "aiohttp" else version(name))
    assert not standins.left_out(checkout, {})


def test_bytecode_changes_nothing(checkout: Path) -> None:
    standins.note_passed(checkout)
    (checkout / standins.FOLDER / "__pycache__").mkdir()
    (checkout / standins.FOLDER / "__pycache__" / "server.pyc").write_bytes(b"")
    assert standins.left_out(checkout, {})


def test_nothing_else_is_used_that_could_change() -> None:
    """Every import is of Python, of a stand-in, or of a file or library that the hash holds."""
    names = set[str]()
    for path in (ROOT / standins.FOLDER).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module or "")
    ours = {name for name in names if name.startswith("tests") and not name.startswith("tests.standins")}
    assert ours == {"tests.watch"}
    tops = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"tests"}
    tops.discard("compression")  # of Python as well, from 3.14 on
    held = set[str]()
    for library in standins.LIBRARIES:
        files = metadata.files(library) or []
        held.update(path.parts[0].removesuffix(".py") for path in files)
    assert tops - held == set()
