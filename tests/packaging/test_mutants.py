"""`make mutants` itself: what an edit finds and makes, what is said of a fault, and that every fault can be made."""

import ast
import re
from collections import defaultdict
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.mutants import Fault, code, every, fault, faults, machine, survey, text
from tests.mutants.__main__ import main
from tests.mutants.edits import Edit, NotOnePlace, broken, check
from tests.mutants.machine import Mutant
from tests.mutants.reach import Reach

ROOT = Path(__file__).parents[2]
TEST = "tests/test_sum.py::test_sum"
SOURCE = '''\
LEVELS = ("look", "work")


class Ledger:
    """Adds."""

    @property
    def both(self):
        return self.first and self.second

    def add(self, a, b, *, more=1):
        self.store(a, key=b, sure=True)
        self.acknowledge(a)
        return f"UPDATE t SET a={a}   WHERE b=? AND {b}"


def add(a, b):
    if a > 10:
        while True:
            pass
    return a + b


def unused():
    return 1
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small project with one package and its tests."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "bot").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (tmp_path / "bot" / "__init__.py").touch()
    (tmp_path / "bot" / "adds.py").write_text(SOURCE)
    (tmp_path / "bot" / "other.py").write_text("THREE = 3\n")
    (tmp_path / "scripts" / "setup").write_text("umask 077\n")
    (tmp_path / "tests" / "test_sum.py").write_text(
        "from bot.adds import add\n\n\ndef test_sum():\n    assert add(1, 2) == 3\n\n\n"
        "def test_wrong():\n    assert add(1, 2) == 4\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("place", "edit", "made"),
    [
        ("add", code("A + B", "A - B"), "return a - b"),
        ("LEVELS", code("'look'"), "LEVELS = ('work',)"),
        ("LEVELS", code("'look'", "*('look', 'host')"), "LEVELS = (*('look', 'host'), 'work')"),
        ("Ledger.both", code("A and B", "B"), "return self.second"),
        (
            "Ledger.add",
            code("self.store(..., key=A)", "self.store(..., key=None)"),
            "self.store(a, key=None, sure=True)",
        ),
        ("Ledger.add", code("self.acknowledge(A)"), "self.store(a, key=b, sure=True)\n        None\n"),
        (
            "Ledger.add",
            code("self.store(A, ...)\nself.acknowledge(A)", "self.acknowledge(A)\nself.store(A, ...)"),
            "self.acknowledge(a)\n        self.store(a, key=b, sure=True)",
        ),
        ("Ledger.add", text("SET a={a} WHERE b=? AND", "SET a={a} WHERE"), "f'UPDATE t SET a={a} WHERE {b}'"),
        ("Ledger.add", text("{b}", "1"), "f'UPDATE t SET a={a}   WHERE b=? AND 1'"),
        ("scripts/setup", text("077", "022"), "umask 022"),
    ],
)
def test_an_edit_is_made_in_its_place(root: Path, place: str, edit: Edit, made: str) -> None:
    check(root, place, edit)
    file, whole = broken(root, place, edit)
    assert made in whole
    assert made not in (ast.unparse(ast.parse(SOURCE)) if file.endswith(".py") else (root / file).read_text())


@pytest.mark.parametrize(
    ("place", "edit", "count"),
    [
        ("add", code("A * B", "A"), 0),
        ("sum", code("A + B", "A"), 0),
        ("Ledger", text("Adds", "Takes"), 0),
        ("Ledger.add", code("self.A(B)", "None"), 0),
        ("Ledger", code("self", "None"), 4),
        ("scripts/setup", text("7", "2"), 2),
        ("scripts/none", text("7", "2"), 0),
    ],
)
def test_what_is_not_in_its_place_exactly_once_is_an_error(root: Path, place: str, edit: Edit, count: int) -> None:
    with pytest.raises(NotOnePlace, match=f"is {count} times in {place}"):
        check(root, place, edit)


def tried(root: Path, *chosen: Fault) -> tuple[bool, str]:
    """Whether all were noticed, and what is said."""
    said = StringIO()
    good = faults.try_all(chosen, root, Console(file=said, width=200))
    return good, said.getvalue()


@pytest.mark.soak
def test_each_fault_is_told_from_the_others(root: Path) -> None:
    good, said = tried(
        root,
        fault("sum/minus", "add", code("A + B", "A - B"), TEST),
        fault("sum/endless", "add", code("10", "-10"), TEST),
        fault("sum/unused", "unused", code("1", "2"), TEST),
        fault("sum/gone", "add", code("A * B", "A - B"), TEST),
        fault("sum/elsewhere", "THREE", code("3", "4"), TEST),
        fault("sum/broken", "add", code("A + B", "none_such(A)"), TEST),
    )
    assert not good
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in said.splitlines() if line.startswith("sum/")}
    assert lines["sum/minus"] == lines["sum/endless"] == lines["sum/broken"] == "noticed"
    assert lines["sum/unused"] == f"SURVIVED {TEST}"
    assert lines["sum/gone"].startswith("NO SUCH PLACE: code 'A * B' is 0 times in add")
    assert lines["sum/elsewhere"].startswith("NOT IMPORTED: bot/other.py")
    assert (root / "bot" / "adds.py").read_text() == SOURCE, "only the copy is broken"


@pytest.mark.soak
def test_tests_that_fail_without_a_fault_notice_nothing(root: Path) -> None:
    wrong = "tests/test_sum.py::test_wrong"
    good, said = tried(root, fault("sum/minus", "add", code("A + B", "A - B"), TEST, wrong))
    assert not good
    assert f"sum/minus: {wrong}" in said
    assert "noticed" not in said


@pytest.mark.soak
def test_all_noticed_is_a_success(root: Path) -> None:
    good, said = tried(root, fault("sum/minus", "add", code("A + B", "A - B"), TEST))
    assert good, said


def test_an_unknown_name_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["store/synchronous-of"])
    assert "the nearest is store/synchronous-off" in capsys.readouterr().err


def test_names_are_unique_and_tests_are_there() -> None:
    chosen = every()
    assert len({one.name for one in chosen}) == len(chosen) > 200
    defined: dict[str, set[str]] = defaultdict(set)
    for file in {test.partition("::")[0] for one in chosen for test in one.tests}:
        whole = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else ""
        defined[file] = set(re.findall(r"\b(?:def|class) (\w+)", whole))
    missing = [
        f"{one.name}: {test}"
        for one in chosen
        for test in one.tests
        for file, *names in [test.partition("[")[0].split("::")]
        if not set(names) <= defined[file]
    ]
    assert missing == []


def test_each_fault_can_be_made() -> None:
    """Else nobody would hear of it before all are tried."""
    lost = []
    for one in every():
        try:
            check(ROOT, one.place, one.edit)
        except NotOnePlace as error:
            lost.append(f"{one.name}: {error}")
    assert lost == []


def test_a_machine_makes_its_mutants_in_functions_of_any_kind(root: Path) -> None:
    found = machine.in_file(root, "bot/adds.py")
    assert len(set(found)) == len(found)
    made = {(one.function.partition(":")[2], one.change) for one in found}
    assert {
        ("Ledger.both", "drop operand 1 in: self.first and self.second"),
        ("Ledger.both", "return None in: return self.first and self.second"),
        ("Ledger.add", "drop the statement in: self.acknowledge(a)"),
        ("Ledger.add", "drop argument sure in: self.store(a, key=b, sure=True)"),
        ("add", "compare otherwise in: a > 10"),
        ("add", "one more in: 10"),
    } <= made
    assert {name for name, _ in made} == {"Ledger.both", "Ledger.add", "add", "unused"}, "constants are left alone"
    for one in found:
        assert ast.unparse(machine.apply(root, one)) != ast.unparse(ast.parse(SOURCE)), one
    with pytest.raises(LookupError):
        machine.apply(root, Mutant("bot/adds.py:add", "drop operand 1 in: gone"))
    assert survey.draw(root, 5, 3) == survey.draw(root, 5, 3) != survey.draw(root, 5, 4)


def test_the_most_specific_tests_are_chosen_and_one_case_of_each_before_the_others() -> None:
    reach = Reach()
    small, large = ["a.py:f"], ["a.py:f", "a.py:g", "b.py:h"]
    reach.add({"t.py::wide": large, "t.py::cases[1]": small, "t.py::cases[2]": small, "t.py::other": ["b.py:h"]})
    assert reach.choose("a.py:f") == ["t.py::cases[1]", "t.py::wide", "t.py::cases[2]"]
    assert reach.choose("a.py:g") == ["t.py::wide"]
    assert reach.choose("b.py:new") == ["t.py::other", "t.py::wide"], "those of its module"
    assert reach.choose("c.py:f") == []
