"""A channel is a folder and a line: the one of `docs/adding-a-channel.md` runs, and the service names none."""

import asyncio
import codecs
import os
import re
import sys
from pathlib import Path

from channels import registry
from tests.watch import PATIENCE

ROOT = Path(__file__).parents[2]
RUN = """
import asyncio, sys
from pathlib import Path
from channels import registry
registry.FOLDERS.update({%s})
from bot.config.load import load
from bot.config.checks import warnings
from bot.wiring import Dependencies, build

async def main():
    config = load(None, {}, Path.cwd(), service=True)
    assert list(warnings(config)) == []
    service = await build(config, Dependencies(environ={}, ollama=lambda url: None, gateway=False))
    await service.start()
    health = service.parts.health.view()
    assert health.ready, health
    print(*health.channels, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await service.close()

asyncio.run(main())
"""
CONFIG = """\
agent: {model: offline/offline}
queue: {debounce_ms: 0}
channels:
  console: {enabled: false}
  echo:
    token: one-secret
    hears: say I am one
    file: /dev/stdout
    dm: {policy: open}
    accounts:
      second: {token: two-secret, hears: say I am two, file: /dev/stdout}
"""


async def test_the_channel_of_the_recipe_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "adding-a-channel.md").read_text(encoding="utf-8")
    settings, adapter, line = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "echo").mkdir()
    (tmp_path / "echo" / "settings.py").write_text(settings)
    (tmp_path / "echo" / "adapter.py").write_text(adapter)
    (tmp_path / "config.yaml").write_text(CONFIG)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN % line.strip()),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            shown, decode = "", codecs.getincrementaldecoder("utf-8")().decode  # a piece may end within a character
            while not ("I am one" in shown and "I am two" in shown and "echo echo:second\n" in shown):
                piece = await program.stdout.read(4096)
                assert piece, shown
                shown += decode(piece)
            await program.communicate(b"\n")
            assert program.returncode == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert re.search(r"(?s)one: I am Hark.*?\nI am one", shown), shown
    assert re.search(r"(?s)two: I am Hark.*?\nI am two", shown), shown


def test_the_service_names_no_platform() -> None:
    named = "|".join(name for name in registry.FOLDERS if name != "console")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "bot").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(named, line, re.IGNORECASE)
    ]
    assert found == []
