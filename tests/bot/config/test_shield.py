"""What other processes can read of a running service: not its environment, and no secret in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

ROOT = Path(__file__).parents[3]
SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-canary-1",
    "GITHUB_TOKEN": "gh-canary-2",
    "BOT": "12345:canary-3",
    "PROXY": "http://ada:canary-4-which-is-long@127.0.0.1:9/v1",
}
CONFIG = """
gateway: {port: 0}
channels: {telegram: {enabled: false, token: "${BOT}"}}
providers: {proxy: {api: openai-chat, base_url: "${PROXY}", models: {m: {}}}}
"""
LOOK = """
import ctypes, os
from pathlib import Path
from bot.config.secrets import shield
shield(["s3cret", "sixteen-and-longer"])
dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
print(dumpable, *sorted(os.environ.keys() - {"LANG", "PATH", "PYTHONPATH"}))
print(*Path("/proc/self/environ").read_text().split(chr(0)))
"""


def test_the_process_forgets_secrets_and_is_closed() -> None:
    given = {
        "MINE": "s3cret",
        "SOME_API_KEY": "canary-5",
        "URL": "http://sixteen-and-longer@h",
        "PATHS": "/opt/as3cretb",  # a short one may be a part of an ordinary word
    }
    environ = {"LANG": "C.UTF-8", "PATH": "/bin", "PYTHONPATH": str(ROOT), **given}
    done = subprocess.run([sys.executable, "-c", LOOK], env=environ, capture_output=True, text=True, check=True)
    closed, block = done.stdout.splitlines()
    assert closed == "0 PATHS"
    assert "PATHS=/opt/as3cretb" in block
    assert "MINE=s3cret" not in block
    assert "canary-5" not in block
    assert "sixteen" not in block


def test_a_running_service_shows_no_secret(tmp_path: Path) -> None:
    """As root, who may look into everybody's environment; and the service still has its keys."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **SECRETS}
    hark = [sys.executable, "-m", "bot"]
    with subprocess.Popen(
        [*hark, "run"], cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as service:
        try:
            asked = [*hark, "status"]
            while (
                found := subprocess.run(asked, cwd=tmp_path, env=environ, capture_output=True, check=False)
            ).returncode:
                assert service.poll() is None
            shown = Path(f"/proc/{service.pid}/environ").read_bytes()
        finally:
            service.terminate()
            service.wait(60)
    assert b"PYTHONPATH=" in shown
    assert b"canary" not in shown
    assert b"proxy/m (providers.proxy is configured)" in found.stdout
