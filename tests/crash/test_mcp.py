"""Real deaths in the middle of a call of an MCP server: of the service, of the server, and of both one after the other.

The model makes one call and then says what it was told of it. Whoever dies, the call reached the server once, what
became of it is told as unknown, and there is one process of the server while the service runs, and none afterwards.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.context import INTERRUPTED
from tests.bot.mcp.house import StandIn, until
from tests.crash import child
from tests.forked import CONTEXT
from tests.standins.openai_server import OpenAIServer
from tests.standins.request_log import Request
from tests.standins.script import Call, Part, Say
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE
from tests.stored import Stored

_LOST = "The server m has ended during the call, whose outcome is unknown."
_COUNT = {"name": "count"}
_WAITS = {**_COUNT, "does": {"sleep": 60}}


def answer(request: Request) -> list[Part]:
    """What the model says: a call, and what it was told of it."""
    last = request.messages[-1]
    return [Say(f"It says: {last['content']}")] if last["role"] == "tool" else [Call("m_count", {"key": "1"})]


@pytest.mark.waits
@pytest.mark.parametrize("dying", ["service", "server", "service and server"])
async def test_a_death_in_the_middle_of_a_call(dying: str, fresh: Callable[[], Path]) -> None:
    """Waits for programs that have to end."""
    home = fresh()
    stand_in = StandIn(home / "mcp", _WAITS, stays=True)  # it has a child, and neither ends by itself
    telegram, model = TelegramServer(), OpenAIServer(keys=("sk-test-key",), models=("gpt-test",))
    model.default = answer

    def serve() -> Any:
        urls = (telegram.base_url, telegram.base_file_url, model.base_url)
        given = (str(home), telegram.token, *urls, (str(ALICE.id),), {"m": stand_in.server})
        process = CONTEXT.Process(target=child.main, args=given)
        process.start()
        return process

    async with telegram, model:
        service = serve()
        try:
            telegram.write("go", user=ALICE)
            await until(lambda: stand_in.calls)
            if dying == "server":
                os.kill(stand_in.running()[0], signal.SIGKILL)
            else:
                service.kill()
                await asyncio.to_thread(service.join)
                await until(lambda: not stand_in.running())
                service = serve()
            stand_in.show(_COUNT, stays=True, **({"dies": "no more"} if dying == "service and server" else {}))
            told = _LOST if dying == "server" else INTERRUPTED
            await until(lambda: told in " ".join(" ".join(telegram.texts()).split()))
            telegram.write("and again", user=ALICE)
            await until(lambda: "".join(telegram.texts()).count("It says:") == 2)
            assert ("no more" in " ".join(telegram.texts())) == (dying == "service and server")
            assert len(stand_in.calls) == 1 + (dying != "service and server")
            assert len(stand_in.running()) == 2 * (dying != "service and server")
        finally:
            service.terminate()
            await asyncio.to_thread(service.join)
    assert stand_in.running() == []
    states = [state for (state,) in Stored(home / "state").calls("state")]
    assert states[0] == ("failed" if dying == "server" else "cut")
