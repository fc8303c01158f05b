"""`.env` beside the configuration, and variables that are empty."""

from pathlib import Path

import pytest

from bot.cli.home import find
from bot.config.checks import warnings
from bot.config.choose_model import choose_model
from bot.config.errors import ConfigError
from bot.config.load import load
from bot.config.secrets import secrets
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
