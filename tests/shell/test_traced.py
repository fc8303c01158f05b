"""Lines that rules cover are run: they start no program that the judge did not name, each where the rule holds."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.shell import Judge, Judgement, Rule
from tests.shell import composed, tracing
from tests.shell.corpus import SYSTEM_PATH, Place, benign, make_place, make_repository

pytestmark = pytest.mark.skipif(not tracing.available(), reason="strace is missing or may not trace here")

# Programs that start no others whatever their words are, and those that do not with some.
_RULES = (
    *("ls", "cat", "head", "tail", "wc", "sort", "uniq", "cut", "tr", "grep", "basename", "dirname", "seq", "stat"),
    *("date", "jq", "mkdir", "cp", "tee", "rm", "nl", "du", "df", "realpath", "readlink", "id", "diff", "comm"),
    *("find src -name **", "find . -maxdepth **", "sed -n **", "awk {print*} **", "git status **", "git log **"),
)
# Takes long or for ever, or looks at more than the workspace.
_NOT_RUN = ("find /", "du -h --max-depth=1 ~", "tail -f", "-exec", "-delete", "rm -rf", "/etc")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = make_place(tmp_path_factory.mktemp("place"))
    make_repository(made)
    return made


@pytest.fixture(scope="module")
def judge(place: Place) -> Judge:
    there = Rule("touch", ("made",), str(place.workspace.resolve()))
    return place.judge([*_RULES, there], SYSTEM_PATH)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


def faults(command: str, judgement: Judgement, place: Place, scratch: Path) -> list[str]:
    """What it did that was not foretold, in words."""
    trace = tracing.traced(command, place, scratch)
    named = [words[0] for words in judgement.commands if words[0].startswith("/")]
    foretold = {str(Path(name).resolve()) for name in named}
    if any(Path(name).name == "git" for name in named):
        foretold |= {program for program in trace.ran if program.endswith("/git-core/git")}
    made = {path for path in trace.wrote if Path(path).name == "made"} - {str(place.workspace.resolve() / "made")}
    wrote = {*tracing.outside(trace, place, scratch)} if judgement.covered == "host" else set()
    return [f"ran {program}" for program in trace.ran - foretold] + [f"wrote {path}" for path in sorted(wrote | made)]


def _covered(judge: Judge, place: Place) -> list[str]:
    commands = [line.command for line in benign()]
    return [
        command
        for command in commands
        if not any(part in command for part in _NOT_RUN) and place.judged(judge, command).covered
    ]


def _run(commands: Sequence[str], judge: Judge, place: Place, scratch: Path) -> None:
    wrong = []
    for command in commands:
        for left in ("made", "o.txt", "sub/made"):
            (place.workspace / left).unlink(missing_ok=True)
        judgement = place.judged(judge, command)
        if judgement.covered and (found := faults(command, judgement, place, scratch)):
            wrong.append(f"{command!r} foretold {judgement.commands}: {found}")
    assert not wrong, "\n".join(wrong)


def test_the_tracer_sees_what_is_done(place: Place, scratch: Path) -> None:
    """Or the tests below could not fail."""
    nothing = Judgement((), (), (), False, "host", ())
    found = faults("/bin/true; echo x > ../written; mkdir ../made; rmdir ../made", nothing, place, scratch)
    above = place.workspace.parent
    programs = {str(Path(shutil.which(name) or "").resolve()) for name in ("true", "mkdir", "rmdir")}
    assert {fault.removeprefix("ran ") for fault in found if fault.startswith("ran ")} == programs
    assert f"wrote {above}/written" in found
    assert f"wrote {above}/made" in found


def test_a_sample_of_what_agents_run_does_what_was_foretold(place: Place, judge: Judge, scratch: Path) -> None:
    commands = _covered(judge, place)
    assert len(commands) > 100
    _run(commands[::9], judge, place, scratch)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(line=composed.lines())
def test_composed_lines_do_what_was_foretold(line: str, place: Place, judge: Judge, scratch: Path) -> None:
    _run([line], judge, place, scratch)


@settings(max_examples=500)
@given(line=composed.states())
def test_folders_are_what_they_were_taken_for(line: str, place: Place, judge: Judge, scratch: Path) -> None:
    _run([line], judge, place, scratch)


@pytest.mark.soak
def test_all_that_agents_run_does_what_was_foretold(place: Place, judge: Judge, scratch: Path) -> None:
    _run(_covered(judge, place), judge, place, scratch)


@pytest.mark.soak
@settings(max_examples=5_000)
@given(line=composed.states())
def test_folders_are_always_what_they_were_taken_for(line: str, place: Place, judge: Judge, scratch: Path) -> None:
    _run([line], judge, place, scratch)


@pytest.mark.soak
@settings(max_examples=1_000)
@given(line=composed.lines(changing=True) | composed.mutated(st.sampled_from([line.command for line in benign()])))
def test_mutated_lines_do_what_was_foretold(line: str, place: Place, judge: Judge, scratch: Path) -> None:
    if not any(part in line for part in _NOT_RUN):
        _run([line], judge, place, scratch)
