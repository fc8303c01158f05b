"""Values that stand in files and behind commands, as the command line shows them."""

import sys
import time
from pathlib import Path

import pytest

from bot.config import references
from bot.config.errors import ConfigError
from bot.config.load import load
from bot.config.model import Config
from bot.config.secrets import secrets
from tests import forked
from tests.bot.mcp.house import lives
from tests.forked import ENVIRON, Done
from tests.watch import PATIENCE

KEY = "sk-canary-0123456789"


def hark(folder: Path, *arguments: str, **environ: str) -> Done:
    return forked.hark(folder, *arguments, environ={**ENVIRON, **environ})


def written(folder: Path, text: str, environ: dict[str, str] | None = None) -> Config:
    (folder / "config.yaml").write_text(text)
    return load(folder / "config.yaml", {"PATH": ENVIRON["PATH"], **(environ or {})}, folder)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as error:
        written(folder, text)
    return str(error.value)


def keys(config: Config) -> list[str]:
    return [key.get_secret_value() for key in config.providers["one"].api_keys]


ONE = "providers: {one: {api: openai-chat, base_url: 'http://127.0.0.1:1', models: {m: {}}, api_keys: [%s]}}\n"


def test_values_stand_in_files_and_behind_commands(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}1\n")
    config = written(
        tmp_path, ONE % f"file:key, 'file:{tmp_path}/key', 'command:echo {KEY}2', '${{K}}'", {"K": "third-key"}
    )
    assert keys(config) == [f"{KEY}1", f"{KEY}1", f"{KEY}2", "third-key"]
    assert tmp_path / "key" in config.source.files, "commands of the agent must not read it"
    assert {f"{KEY}1", f"{KEY}2"} <= set(secrets(config, {}))
    config = written(
        tmp_path, "gateway: {port: 'command:echo 8421'}\nagent: {name: 'file:${HERE}/key'}", {"HERE": str(tmp_path)}
    )
    assert (config.gateway.port, config.agent.name) == (8421, f"{KEY}1")


def test_a_command_runs_once_for_each_load(tmp_path: Path) -> None:
    text = "'command:echo x >> ran; echo abcdefgh'"
    assert keys(written(tmp_path, ONE % f"{text}, {text}")) == ["abcdefgh"] * 2
    assert (tmp_path / "ran").read_text() == "x\n"


def test_a_variable_that_begins_as_one_is_none(tmp_path: Path) -> None:
    config = written(tmp_path, ONE % "'${K}'", {"K": "command:touch ran"})
    assert keys(config) == ["command:touch ran"]
    assert not (tmp_path / "ran").exists()


def test_a_command_gets_the_keys_that_it_names(tmp_path: Path) -> None:
    environ = {"VAULT_TOKEN": "v-1", "SOME_API_KEY": "v-2", "BOT": "v-3", "PLAIN": "v-4"}
    text = ONE % "'${BOT}', 'command:env | sort | tr \"\\n\" \" \" > found; echo a${VAULT_TOKEN}b'"
    assert keys(written(tmp_path, text, environ)) == ["v-3", "av-1b"]
    found = (tmp_path / "found").read_text()
    assert "VAULT_TOKEN=v-1" in found
    assert "PLAIN=v-4" in found
    assert "v-2" not in found
    assert "v-3" not in found


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("file:missing", "file `missing`: it cannot be read: No such file or directory"),
        ("file:.", "file `.`: it is no file"),
        ("file:empty", "file `empty`: it gives nothing"),
        ("file:bytes", "file `bytes`: it gives no text in UTF-8"),
        ("command:echo canary; exit 3", "command `echo canary; exit 3`: it ended with exit code 3"),
        ("command:true", "command `true`: it gives nothing"),
        ("command:head -c 70000 /dev/zero", "command `head -c 70000 /dev/zero`: it gives more than 64 KB"),
        ("command:yes", "command `yes`: it gives more than 64 KB"),
    ],
)
def test_what_gives_no_value_is_named(tmp_path: Path, reference: str, says: str) -> None:
    (tmp_path / "empty").write_text("\n\n")
    (tmp_path / "bytes").write_bytes(b"canary\xff")
    found = refused(tmp_path, "agent: {max_steps: 0}\n" + ONE % f"'{reference}'")
    lines = [f"{tmp_path}/config.yaml:2: providers.one.api_keys[0]: {says}"]
    assert found.splitlines()[1:] == lines, "the other mistake, and this one once"


def test_a_command_that_takes_too_long_is_ended_with_what_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be ended before it has come so far; then it is given twice the time."""
    pid, seconds = tmp_path / "pid", 0.05
    while not pid.exists():
        seconds *= 2
        monkeypatch.setattr(references, "TIMEOUT", seconds)
        found = refused(tmp_path, ONE % "'command:sleep 60 & echo $! > begun; mv begun pid; wait'")
        assert f"it has not ended within {seconds:g} s" in found
    if sys.platform == "linux":
        until = time.monotonic() + PATIENCE  # one that was killed may take a moment to be gone
        while lives(int(pid.read_text())):
            assert time.monotonic() < until
            time.sleep(0)


def test_check_says_which_commands_ran_and_no_value(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "config.yaml").write_text(ONE % f"'command:echo {KEY[:9]}${{END}}', 'file:key'")
    done = hark(tmp_path, "config", "check", END="end-of-it")
    assert (done.code, done.error) == (0, "")
    assert done.out.splitlines()[1] == "providers.one.api_keys[0]: its command ran and gave a value"
    (tmp_path / "config.yaml").write_text("gateway: {token: 'file:short'}\nowners: ['file:short']")
    (tmp_path / "short").write_text("canary")
    done = hark(tmp_path, "config", "check")
    assert done.code == 2
    assert "canary" not in done.out + done.error
    assert "gateway.token" in done.error


def test_get_shows_no_key_that_stands_where_none_belongs(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"agent: {{name: 'ghp_{'a1B2' * 9}'}}\n" + ONE % f"'{KEY}'")
    done = hark(tmp_path, "config", "get", "agent.name")
    assert (done.code, done.out) == (0, "[secret]\n")
