"""The log file: its owner's alone, also after it has been begun anew, and without secrets."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.telemetry import logs
from bot.telemetry.redact import Redactor, mask_url


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    for handler in root.handlers:
        handler.close()
    root.handlers[:], root.level = handlers, level


def test_every_file_of_the_log_is_its_owners_alone(
    tmp_path: Path, root: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_FILE_BYTES", 200)
    file = tmp_path / "hark.log"
    file.write_text("of an earlier version\n")
    file.chmod(0o644)
    logs.set_up(Redactor(["s3cret-word"]), file)
    assert file.stat().st_mode & 0o777 == 0o600
    for number in range(9):
        root.warning("line %d with s3cret-word", number)
    assert {found.name: found.stat().st_mode & 0o777 for found in tmp_path.iterdir()} == {
        "hark.log": 0o600,
        "hark.log.1": 0o600,
    }
    assert "s3cret-word" not in file.read_text()
    assert "line 8" in file.read_text()


@pytest.mark.parametrize(
    ("url", "shown", "secrets"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1", set()),
        ("https://api.telegram.org/file/bot", "https://api.telegram.org/file/bot", set()),
        ("https://u:p%40ss@h/", "https://**********@h/", {"p%40ss", "p@ss"}),
        ("https://token@h/", "https://**********@h/", {"token"}),
        ("https://h/bot123456:AAbbCCddEE/x", "https://h/**********/x", {"bot123456:AAbbCCddEE"}),
        ("https://h/?a=1&b=&c", "https://h/?a=**********&b=&**********", {"1", "c"}),
        ("http://[::1/x", "**********", {"http://[::1/x"}),
        ("no URL at all", "no URL at all", set()),
    ],
)
def test_what_a_url_may_hold(url: str, shown: str, secrets: set[str]) -> None:
    assert (mask_url(url)[0], set(mask_url(url)[1])) == (shown, secrets)


# A log that cannot be written.

ROOT = Path(__file__).parents[2]
PROGRAM = """\
import logging
from pathlib import Path
from bot.telemetry.logs import set_up
from bot.telemetry.redact import Redactor
set_up(Redactor([]), Path("hark.log"))
for number in range(5):
    logging.getLogger("test").warning("line %s", number)
"""


def test_a_full_disk_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "hark.log").symlink_to("/dev/full")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert done.stderr == "The log cannot be written: [Errno 28] No space left on device\n"
