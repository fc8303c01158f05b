"""`make mutants` itself: what it says of a fault that is noticed, survives, is gone, or is not the one imported."""

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.mutants import Fault, NoSuchText, every, find
from tests.mutants.__main__ import main, try_all

ROOT = Path(__file__).parents[2]
TEST = "tests/test_sum.py::test_sum"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small project with one function and its tests."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (tmp_path / "adds.py").write_text("def add(a, b):\n    return a + b\n\n\ndef unused():\n    return 1\n")
    (tmp_path / "other.py").write_text("THREE = 3\n")
    (tmp_path / "tests" / "test_sum.py").write_text(
        "from adds import add\n\n\ndef test_sum():\n    assert add(1, 2) == 3\n\n\n"
        "def test_wrong():\n    assert add(1, 2) == 4\n"
    )
    return tmp_path


def tried(root: Path, *faults: Fault) -> tuple[bool, str]:
    """Whether all were noticed, and what is said."""
    said = StringIO()
    good = try_all(faults, root, Console(file=said, width=200))
    return good, said.getvalue()


def test_each_fault_is_told_from_the_others(root: Path) -> None:
    good, said = tried(
        root,
        Fault("sum/minus", "adds.py", "a + b", "a - b", (TEST,)),
        Fault("sum/unused", "adds.py", "return 1", "return 2", (TEST,)),
        Fault("sum/gone", "adds.py", "a * b", "a - b", (TEST,)),
        Fault("sum/several", "adds.py", "return", "yield", (TEST,)),
        Fault("sum/elsewhere", "other.py", "3", "4", (TEST,)),
        Fault("sum/broken", "adds.py", "a + b", "a +", (TEST,)),
        Fault("sum/no-such-file", "none.py", "a + b", "a - b", (TEST,)),
    )
    assert not good
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in said.splitlines() if line.startswith("sum/")}
    assert re.match(r"noticed +\d+\.\d s$", lines["sum/minus"])
    assert lines["sum/unused"] == f"SURVIVED {TEST}"
    assert lines["sum/gone"].startswith("NO SUCH TEXT: it stands 0 times in adds.py")
    assert lines["sum/several"].startswith("NO SUCH TEXT: it stands 2 times in adds.py")
    assert lines["sum/elsewhere"].startswith("NOT IMPORTED: other.py")
    assert lines["sum/broken"].startswith("NOT RUN: pytest ended with")
    assert lines["sum/no-such-file"].startswith("NO SUCH TEXT: it stands 0 times in none.py")
    assert (root / "adds.py").read_text().startswith("def add(a, b):\n    return a + b\n"), "only the copy is broken"


def test_tests_that_fail_without_a_fault_notice_nothing(root: Path) -> None:
    wrong = "tests/test_sum.py::test_wrong"
    good, said = tried(root, Fault("sum/minus", "adds.py", "a + b", "a - b", (TEST, wrong)))
    assert not good
    assert f"sum/minus: {wrong}" in said
    assert "noticed" not in said


def test_all_noticed_is_a_success(root: Path) -> None:
    good, said = tried(root, Fault("sum/minus", "adds.py", "a + b", "a - b", (TEST,)))
    assert good, said


def test_an_unknown_name_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["store/synchronous-of"])
    assert "the nearest is store/synchronous-off" in capsys.readouterr().err


def test_names_are_unique_and_tests_are_there() -> None:
    faults = every()
    assert len({fault.name for fault in faults}) == len(faults) > 25
    missing = [
        f"{fault.name}: {test}"
        for fault in faults
        for test in fault.tests
        if not _is_there(*test.partition("[")[0].split("::"))
    ]
    assert missing == []


def _is_there(file: str, *names: str) -> bool:
    path = ROOT / file
    return path.exists() and all(re.search(rf"\b(def|class) {name}\b", path.read_text()) for name in names)


def test_each_text_is_in_its_place_once() -> None:
    """Else its fault could not be made any more, and nobody would hear of it before all are."""
    lost = []
    for fault in every():
        try:
            find(fault, ROOT)
        except NoSuchText as error:
            lost.append(f"{fault.name}: {error}")
    assert lost == []


def test_a_place_is_a_function_wherever_it_lies(root: Path) -> None:
    (root / "agent").mkdir()
    (root / "agent" / "one.py").write_text(
        "def add(a, b):\n    return a + b\n\n\nclass Sum:\n    def add(self):\n        return 1\n"
    )
    whole = (root / "agent" / "one.py").read_text()
    file, at = find(Fault("x/y", "Sum.add", "return", "", ()), root)
    assert (file.name, whole[at:].strip()) == ("one.py", "return 1")
    with pytest.raises(NoSuchText):
        find(Fault("x/y", "Sum.add", "a + b", "", ()), root)
