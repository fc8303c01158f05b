"""Which folders can be the workspace: none that is somebody else's, by whatever name it is called."""

import os
import sys
from pathlib import Path

import pytest

from bot.config.errors import ConfigError
from bot.config.folders import folder_conflicts
from bot.config.load import load

ROOT = Path(__file__).parents[3]
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
