"""What `hark run` keeps out of its memory, in a process that has imported nothing else."""

import subprocess
import sys
from pathlib import Path

from tests.forked import ENVIRON, ROOT

CONFIG = """
agent: {model: gpt/x}
heartbeat: {model: claude/x}
gateway: {port: 0}
providers:
  gpt: {api: openai-chat, base_url: "http://127.0.0.1:9/v1", api_keys: [key]}
  claude: {api: anthropic, base_url: "http://127.0.0.1:9", api_keys: [key]}
"""

# `hark run` freezes what is in memory once everything heavy has been imported: here that ends it.
PROGRAM = """
import gc, os, signal, sys
gc.freeze = lambda: os.kill(os.getpid(), signal.SIGTERM)
from bot.__main__ import main
try: main()
except SystemExit as end: assert end.code == 0, end.code
print(*sorted({name.partition(".")[0] for name, module in sys.modules.items() if module}))
"""


def test_a_service_imports_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "run", "--config", "config.yaml"],
        cwd=tmp_path,
        env={**ENVIRON, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert {"bot", "structlog", "starlette", "openai", "anthropic"} <= imported
    unused = {"rich", "pygments", "prompt_toolkit", "aiohttp", "discord", "telegram", "slack_bolt", "slack_sdk"}
    assert imported & unused == set()
