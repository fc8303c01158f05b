"""Programs that are run to their end: what they may say, and that nothing of them is left."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from agent.programs import TooMuch, run
from tests.watch import PATIENCE, LoopTime

MOST = 200_000


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_it_reads_answers_and_ends() -> None:
    code = "import sys; d = sys.stdin.read(); print(d.upper()); sys.stderr.write('e' * 900_000); sys.exit(3)"
    assert await run(python(code), b"a" * 50_000, {}, "/", MOST) == (3, b"A" * 50_000 + b"\n", b"e" * (MOST + 1))
    assert await run(python("import os; os.close(0)"), b"a" * 5_000_000, {}, "/", MOST) == (0, b"", b"")


def gone(file: Path) -> bool:
    status = Path(f"/proc/{file.read_text()}/stat")
    return not status.exists() or ") Z " in status.read_text()


@pytest.mark.parametrize(
    ("code", "error"),
    [("[print('x' * 99_999) for _ in range(10**6)]", TooMuch), ("import time; time.sleep(60)", TimeoutError)],
)
async def test_one_that_says_too_much_or_is_too_late_is_gone(tmp_path: Path, code: str, error: type[Exception]) -> None:
    begins = (
        "import os, subprocess; child = subprocess.Popen(['sleep', '60']); "
        "open('begun', 'w').write(str(child.pid)); os.rename('begun', 'pid'); "
    )
    time, pid = LoopTime(), tmp_path / "pid"
    running = asyncio.create_task(run(python(begins + code), b"", os.environ, tmp_path, MOST, 2 * PATIENCE))
    while not pid.exists():  # noqa: ASYNC110
        await asyncio.sleep(0)
    if error is TimeoutError:
        await time.advance(2 * PATIENCE)
    with pytest.raises(error):
        await running
    while not gone(pid):  # noqa: ASYNC110
        await asyncio.sleep(0)
