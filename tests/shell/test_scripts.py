"""Shell scripts as they are found on a machine: long, odd, some broken. The judge answers, in bounded time."""

import time
from itertools import islice
from pathlib import Path

import pytest

from agent.shell import Judgement
from tests.shell.corpus import make_place

_NEAR = ("/usr/bin", "/usr/sbin", "/etc/init.d", "/etc/profile.d", "/etc/cron.daily", "/var/lib/dpkg/info")
_FAR = ("/usr/share", "/usr/lib", "/usr/local", "/opt", str(Path(__file__).parents[2]))
_MOST_BYTES = 30_000  # the longest command that `exec` takes
_SECONDS = 1.0  # of the processor for one


def _scripts(*folders: str) -> list[str]:
    """The text of each, distinct, in a steady order."""
    found: dict[str, None] = {}
    for folder in folders:
        for file in sorted(islice(Path(folder).rglob("*"), 60_000)):
            try:
                if file.is_symlink() or not file.is_file() or not 0 < file.stat().st_size <= _MOST_BYTES:
                    continue
                with file.open("rb") as opened:
                    first = opened.readline(100)
                    if file.suffix in (".sh", ".bash") or (first[:2] == b"#!" and first.rstrip().endswith(b"sh")):
                        found[(first + opened.read()).decode(errors="surrogateescape")] = None
            except OSError:
                continue
    return list(found)


def _judge_all(scripts: list[str], folder: Path) -> None:
    place = make_place(folder)
    judge = place.judge()
    for script in scripts:
        began = time.thread_time()
        judgement = place.judged(judge, script)
        took = time.thread_time() - began
        assert isinstance(judgement, Judgement)
        assert took < _SECONDS, f"{took:.1f} s for {script[:200]!r}"


def test_a_sample_of_real_scripts_is_judged(tmp_path: Path) -> None:
    scripts = _scripts(*_NEAR)
    if not scripts:
        pytest.skip("no shell script is on this machine")
    _judge_all(scripts[:: max(1, len(scripts) // 40)], tmp_path)


@pytest.mark.soak
def test_all_real_scripts_are_judged(tmp_path: Path) -> None:
    scripts = _scripts(*_NEAR, *_FAR)
    _judge_all(scripts, tmp_path)
    for script in scripts[:50]:  # cut anywhere, as a model might
        _judge_all([script[: len(script) * part // 7] for part in range(1, 7)], tmp_path / f"{hash(script)}")
