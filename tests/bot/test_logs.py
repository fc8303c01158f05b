"""A log that cannot be written."""

import os
import subprocess
import sys
from pathlib import Path

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
