"""The table of limits: what it allows, whom it names, and that it is read as it was written."""

import subprocess
from pathlib import Path

import pytest

from tests.counts import __main__ as command
from tests.counts import table
from tests.counts.tally import COLUMNS, Numbers

OLD, NEW, LARGE = "tests/a/test_old.py::test_old", "tests/a/test_new.py::test_new", "tests/a/test_old.py::test_large"


def counts(**columns: int) -> Numbers:
    return [columns.get(name, 0) for name in COLUMNS]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("tests/test_conftest.py::test_a", "tests"),
        ("tests/wire/test_a.py::test_a[x/y::z]", "tests/wire"),
        ("tests/bot/runs/test_a.py::test_a", "tests/bot/runs"),
        ("tests/bot/runs/deep/test_a.py::Test::test_a", "tests/bot/runs"),
    ],
)
def test_a_test_counts_in_a_folder_at_most_two_levels_below(name: str, folder: str) -> None:
    assert table.folder_of(name) == folder


@pytest.mark.parametrize(("count", "ceiling"), [(0, 0), (1, 2), (19, 20), (100, 110), (4_686, 5_000), (36_183, 38_000)])
def test_a_limit_has_a_few_per_cent_of_room(count: int, ceiling: int) -> None:
    assert table.limit_for(count) == ceiling


def test_what_is_written_is_read_and_is_just_enough(tmp_path: Path) -> None:
    found = {
        OLD: counts(services=1, files=36_183),
        NEW: counts(files=2),
        "tests/b/test_b.py::test_b": counts(),
    }
    rows = {
        folder: table.row([numbers for name, numbers in found.items() if table.folder_of(name) == folder])
        for folder in ("tests/a", "tests/b")
    }
    table.write(tmp_path / "counts.toml", rows)
    assert table.read(tmp_path / "counts.toml") == rows
    assert table.growths(rows, found, rows, ()) == []
    assert rows["tests/a"].most == (1, 0, 0, 36_183, 0)


def test_an_unknown_column_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "counts.toml").write_text('"tests/a" = { service = [1, 1] }')
    with pytest.raises(ValueError, match="tests/a has an unknown column: service"):
        table.read(tmp_path / "counts.toml")


ROWS = {"tests/a": table.row([counts(programs=10), counts(programs=3)])}


def test_a_growth_names_the_tests_above_the_largest_and_those_of_changed_files() -> None:
    found = {OLD: counts(programs=3), NEW: counts(programs=2), LARGE: counts(programs=11)}
    (message,) = table.growths(ROWS, found, {"tests/a"}, {"tests/a/test_new.py"})
    assert message.splitlines() == [
        "tests/a: programs 16, and tests/counts.toml allows 14.",
        "  above 10, the most that one test of it had:",
        f"          11  {LARGE}",
        "  in files that changed since the table was written:",
        f"           2  {NEW}",
    ]


def test_a_growth_of_tests_that_did_not_change_points_elsewhere() -> None:
    found = {f"tests/a/test_old.py::test_{number}": counts(programs=2) for number in range(10)}
    (message,) = table.growths(ROWS, found, {"tests/a"}, {"tests/service.py"})
    assert "so the product or a helper did" in message
    assert "and 2 more" in message


def test_only_whole_folders_are_compared() -> None:
    found = {OLD: counts(programs=100), "tests/new/test_a.py::test_a": counts()}
    assert table.growths(ROWS, found, set(), ()) == []
    assert table.growths(ROWS, found, {"tests/new"}, ()) == [
        "tests/new has no row in tests/counts.toml: write one with `python -m tests.counts --write`."
    ]


def test_files_that_changed_since_the_table_did(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *names, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert table.changed_files(tmp_path) == set()
    (tmp_path / "tests").mkdir()
    git("init", "-q")
    for number, name in enumerate(("test_before.py", "counts.toml", "test_after.py")):
        (tmp_path / "tests" / name).write_text(f"{number}")
        git("add", ".")
        git("commit", "-q", "-m", name)
    (tmp_path / "tests/test_new.py").write_text("")
    assert table.changed_files(tmp_path) == {"tests/test_after.py", "tests/test_new.py"}


def test_without_a_run_there_is_nothing_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--write"], tmp_path) == 1
    assert "make test" in capsys.readouterr().err
