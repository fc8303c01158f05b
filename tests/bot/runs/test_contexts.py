"""Contexts that are kept in memory between turns: bounded however many sessions there are, and used again."""

import gc
from pathlib import Path

from agent.context import Context
from bot.runs.runner import MAX_TOKENS
from tests.scripted_model import ScriptedModel
from tests.service import Hark, running
from tests.watch import lanes_idle


async def in_memory(hark: Hark) -> int:
    """Tokens of all contexts that this process holds, once nothing runs."""
    await lanes_idle()
    gc.collect()
    return sum(found.tokens for found in gc.get_objects() if isinstance(found, Context))


async def test_long_conversations_of_many_people_do_not_stay_in_memory(tmp_path: Path) -> None:
    text = "words " * 40_000
    async with running(tmp_path, model=ScriptedModel(context_window=1_000_000)) as hark:
        hark.model.default = "Fine."
        before = await in_memory(hark)
        await hark.say(text, sender="1")
        each = await in_memory(hark) - before
        assert each > 40_000
        for person in range(2, 3 * MAX_TOKENS // each):
            await hark.say(text, sender=str(person))
        assert MAX_TOKENS - 2 * each < await in_memory(hark) - before <= MAX_TOKENS
