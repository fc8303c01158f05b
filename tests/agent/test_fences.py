"""Words of models are taken out of a line as plain expressions would do it, which take long for some texts."""

import random
import re

from agent.fences import TASK_HEAD, of_others

_OF_THE_MODEL = re.compile(r"^<(event|sent)>\n.*?^</\1>$", re.MULTILINE | re.DOTALL)
_OF_SESSIONS = re.compile(rf"^<subagent>\n.*?^</subagent>$|^\({TASK_HEAD}.*", re.MULTILINE | re.DOTALL)
_PIECES = (
    *("<event>", "</event>", "<sent>", "</sent>", "<subagent>", "</subagent>", f"({TASK_HEAD}", "a", " "),
    *("\n", "\n", "\n", "\n", "\n", "\n"),
)


def test_blocks_of_the_model_are_taken_out_as_before() -> None:
    chance, changed = random.Random(1), 0
    for _ in range(4_000):
        text = "".join(chance.choices(_PIECES, k=chance.randrange(1, 24)))
        assert of_others(text, labelled=False) == _OF_THE_MODEL.sub("", text)
        expected = _OF_THE_MODEL.sub("", _OF_SESSIONS.sub("", text))
        assert of_others(text, labelled=True) == expected
        changed += expected != text
    assert changed > 500
