"""Which words with a slash are taken for a mistyped command."""

import pytest

from bot.cli.terminal.slash import nearest, words


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("/hlep", "/help"), ("/sotp", "/stop"), ("/Stats now", "/status"), ("/nwe", "/new"), ("/ext", "/exit")],
)
def test_a_slip_has_a_nearest_command(typed: str, meant: str) -> None:
    assert nearest(typed) == meant


@pytest.mark.parametrize(
    "text",
    [
        *words(),
        "/HELP new",
        "/tmp",
        "/etc",
        "/usr/bin",
        "/etc/hosts says what?",
        "/home",
        "/hlep\nme",
        "hlep",
        "/",
        "//hlep",
    ],
)
def test_commands_paths_and_other_texts_have_none(text: str) -> None:
    assert nearest(text) is None
