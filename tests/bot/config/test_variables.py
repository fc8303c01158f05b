"""`.env` beside the configuration, and variables that are empty."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli.home import find
from bot.config.checks import warnings
from bot.config.choose_model import choose_model
from bot.config.errors import ConfigError
from bot.config.folders import folder_conflicts
from bot.config.load import load
from bot.config.secrets import secrets
from tests.bot.cli.running import program
from tests.forked import ENVIRON, hark

DISCORD = "channels: {discord: {token: '${DISCORD_TOKEN}'}}\n"


def beside(folder: Path, text: str, config: str | None = DISCORD) -> Path:
    """Write `.env`, and the configuration beside it if there is one."""
    file = folder / ".env"
    file.write_text(text)
    file.chmod(0o600)
    if config is not None:
        (folder / "config.yaml").write_text(config)
    return file


def test_its_variables_are_there_and_those_of_the_process_win(tmp_path: Path) -> None:
    beside(tmp_path, "# tokens\n\nexport DISCORD_TOKEN='of-the-file'\nANTHROPIC_API_KEY=sk-1  # mine\n")
    config = load(None, {}, tmp_path)
    assert config.channels.sections()["discord"].token.get_secret_value() == "of-the-file"  # type: ignore[attr-defined]
    assert choose_model(config, config.environ({}), lambda _: None).api_keys == ("sk-1",)
    assert {"of-the-file", "sk-1"} <= set(secrets(config, config.environ({})))
    assert config.source.files == (tmp_path / "config.yaml", tmp_path / ".env"), "hidden from commands"
    real = load(tmp_path / "config.yaml", {"DISCORD_TOKEN": "real"}, tmp_path / "elsewhere")
    assert real.channels.sections()["discord"].token.get_secret_value() == "real"  # type: ignore[attr-defined]


def test_without_a_configuration_it_lies_where_that_would(tmp_path: Path) -> None:
    file = beside(tmp_path, "OPENAI_API_KEY=sk-2", config=None)
    config = load(None, {}, tmp_path)
    assert config.environ({}) == {"OPENAI_API_KEY": "sk-2"}
    assert config.source.files == (file,)


def test_values_are_as_they_are_written(tmp_path: Path) -> None:
    beside(tmp_path, "A=${B} $C\nB='x # y'\nC=\"two\\nlines\"\nD=a=b\n", config=None)
    assert load(None, {}, tmp_path).source.variables == {"A": "${B} $C", "B": "x # y", "C": "two\nlines", "D": "a=b"}


@pytest.mark.parametrize("line", ["DISCORD_TOKEN", "DISCORD_TOKEN=", "=abc-secret", "DISCORD_TOKEN='abc-secret"])
def test_a_mistake_in_it_names_the_line_and_shows_nothing(tmp_path: Path, line: str) -> None:
    beside(tmp_path, f"A=1\n\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load(None, {}, tmp_path)
    assert str(caught.value).splitlines()[0] == ".env:3: not NAME=value with a value, nor a comment (# …)"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("given", "state"), [({}, "not set"), ({"DISCORD_TOKEN": ""}, "empty")])
def test_an_empty_variable_is_a_mistake_and_no_platform_that_is_off(
    tmp_path: Path, given: dict[str, str], state: str
) -> None:
    (tmp_path / "config.yaml").write_text(DISCORD)
    with pytest.raises(ConfigError) as caught:
        load(None, given, tmp_path)
    assert (
        str(caught.value) == f"config.yaml:1: channels.discord.token: the environment variable DISCORD_TOKEN is {state}"
    )


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_one_that_others_may_read_is_a_warning(tmp_path: Path, mode: int, warned: bool) -> None:
    beside(tmp_path, "DISCORD_TOKEN=x", config="{}").chmod(mode)
    found = list(warnings(load(None, {}, tmp_path)))
    assert [line.endswith(f"chmod 600 {tmp_path / '.env'}") for line in found] == [True] * warned


def test_a_folder_of_that_name_is_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert load(None, {}, tmp_path).source.variables == {}


def test_commands_read_it(tmp_path: Path) -> None:
    beside(tmp_path, "WHO=1\n", config="owners: ['telegram:${WHO}']\n")
    done = hark(tmp_path, "config", "get", "owners", environ=ENVIRON)
    assert (done.code, done.out.split()) == (0, ["[", '"telegram:1"', "]"])
    assert hark(tmp_path, "config", "check", environ=ENVIRON).code == 0


def test_another_programs_file_is_not_looked_at_on_the_way_to_a_hark_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "noted"))
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project, tmp_path / "noted" / "hark"):
        folder.mkdir(parents=True)
    (tmp_path / "noted" / "hark" / "last-run").write_text(f"{home}\0{home / 'state'}")
    beside(project, "this is another program's\n", config=None)
    monkeypatch.chdir(project)
    assert find(None).state == home / "state"


# What other processes can read of a running service: not its environment, and no secret in it.

reads_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

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


@reads_proc
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


@reads_proc
async def test_a_running_service_shows_no_secret(tmp_path: Path) -> None:
    """As root, who may look into everybody's environment; and the service still has its keys."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **SECRETS}
    async with program(tmp_path, environ=environ) as service:
        found = hark(tmp_path, "status", environ=environ)
        shown = (Path("/proc") / str(service.process.pid) / "environ").read_bytes()
    assert b"PYTHONPATH=" in shown
    assert b"canary" not in shown
    assert "proxy/m (providers.proxy is configured)" in found.out


# Which folders can be the workspace: none that is somebody else's, by whatever name it is called.
ALLOWED = "; allowed: a folder for it alone, such as ./workspace"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, below another folder."""
    found = tmp_path / "people" / "ada"
    found.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(found))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # that of an activated environment has folders of its own
    return found


def refused(folder: Path, text: str) -> str:
    """The one line about a configuration in this folder, without its place."""
    (folder / "config.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(None, os.environ, folder)
    (line,) = str(caught.value).splitlines()
    place, _, found = line.partition(": workspace: ")
    assert place.startswith("config.yaml:")
    assert found.endswith(ALLOWED) or "folder" in found
    return found


@pytest.mark.parametrize(
    "written", ['"~"', "${HOME}", "${HOME}/.", "${HOME}/x/..", "../ada", "link", "link/.", ".", "./"]
)
def test_the_home_folder_by_any_name(home: Path, written: str) -> None:
    (home / "link").symlink_to(home)
    assert refused(home, f"workspace: {written}\n") == f"found `{home}`, which is the home folder{ALLOWED}"


@pytest.mark.parametrize("key", ["workspace", "state"])
def test_a_bare_tilde_is_nothing_in_yaml_and_no_folder(home: Path, key: str) -> None:
    (home / "config.yaml").write_text(f"{key}: ~\n")
    with pytest.raises(ConfigError) as caught:
        load(None, os.environ, home)
    found = (
        f"config.yaml:1: {key}: found `~`, which is nothing in YAML; allowed: a folder for it alone, such as ./{key}"
    )
    assert str(caught.value) == found


@pytest.mark.parametrize("written", ["..", "../..", "/", "//", "up"])
def test_what_holds_the_home_folder(home: Path, written: str) -> None:
    (home / "up").symlink_to(home.parent)
    assert f", which holds the home folder, {home}; " in refused(
        home, f"{{workspace: {written}, state: /var/lib/hark}}\n"
    )


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("/etc", "is a folder of the system;"),
        ("/etc/cron.d", "lies where the system keeps what it reads and runs"),
        ("/proc/self/cwd/../../../../../../proc/1", "lies where"),
        ("/boot", "is a folder of the system;"),
        ("/usr", ""),
        ("/usr/bin", "is a folder of programs;"),
        ("/var", ""),
        ("/home", ""),
        ("/tmp", ""),
        (sys.prefix, "is "),
        (str(ROOT), "is the code of Hark;"),
        (str(ROOT / "bot"), "lies in the code of Hark"),
        (str(ROOT / "agent" / "new"), "lies in the code of Hark"),
    ],
)
def test_folders_of_the_system_and_of_hark(tmp_path: Path, home: Path, written: str, why: str) -> None:
    assert f", which {why}" in refused(tmp_path, f"workspace: {written}\n")


def test_the_same_folder_mounted_or_spelled_otherwise(tmp_path: Path) -> None:
    """As a mount, or a disk that does not tell cases apart, shows it: another path to the same folder."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").symlink_to(tmp_path / "folder")
    assert folder_conflicts_of(tmp_path / "other", tmp_path / "folder" / "state") == ["state"]


def folder_conflicts_of(workspace: Path, state: Path) -> list[str]:
    """The keys that are pointed at, for paths as they are."""
    return [key for key, _ in folder_conflicts(workspace, state, None, state_named=True)]


def test_the_state_folder_in_it(tmp_path: Path, home: Path) -> None:
    (own := tmp_path / "own").mkdir()
    assert ", which holds the state folder, which is for the service alone" in refused(own, "workspace: .\n")


def test_the_configuration_in_it(tmp_path: Path, home: Path) -> None:
    (tmp_path / "own").mkdir()
    found = refused(tmp_path / "own", "{workspace: ., state: ../state}\n")
    assert ", which holds this configuration file" in found


def test_a_link_where_the_default_is(tmp_path: Path, home: Path) -> None:
    (tmp_path / "workspace").symlink_to(home)
    with pytest.raises(ConfigError, match=r"^without a configuration file: workspace: .* is the home folder"):
        load(None, os.environ, tmp_path)


@pytest.mark.parametrize("written", ["{}", "workspace: ~/work", "workspace: /srv/hark", "workspace: /workspace"])
def test_what_is_allowed_in_a_home_folder(home: Path, written: str) -> None:
    (home / "config.yaml").write_text(f"{written}\n".replace("~", str(home)))
    assert load(None, os.environ, home).workspace.name in ("workspace", "work", "hark")


def test_default_folders_are_fine_without_a_file(home: Path) -> None:
    assert load(None, os.environ, home).workspace == home / "workspace"
