"""A command is built alone, and nobody sees it: its help and the words about mistakes are those of the whole."""

from collections.abc import Iterator

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from bot.cli import app as cli

WHOLE = get_command(cli.app)


def _paths(command: object, *above: str) -> Iterator[tuple[str, ...]]:
    if isinstance(command, TyperGroup):
        for name, one in command.commands.items():
            yield (*above, name)
            yield from _paths(one, *above, name)


@pytest.mark.parametrize("more", ["--help", "--unknown"])
def test_what_a_command_says_is_the_same(capsys: pytest.CaptureFixture[str], more: str) -> None:
    seen = 0
    for path in _paths(WHOLE):
        called = cli._called([*path, more])
        assert len(called.registered_commands) + len(called.registered_groups) == 1
        said = []
        for command in (WHOLE, get_command(called)):
            with pytest.raises(SystemExit):
                command.main([*path, more], prog_name="hark")
            said.append(capsys.readouterr())
        assert said[0] == said[1]
        assert f"hark {' '.join(path)} " in said[0].out + said[0].err
        seen += 1
    assert seen > 40


@pytest.mark.parametrize("words", [[], ["statu"], ["--help"], ["--config", "x", "status"], ["--", "status"]])
def test_whatever_is_not_its_name_sees_all(words: list[str]) -> None:
    assert cli._called(words) is cli.app
