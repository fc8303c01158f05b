"""The terminal without a screen, beside a real service, with a model that the test leads."""

import asyncio
import io
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.message import ToolCall
from bot.cli.terminal.client import Client, Rejected, Unreachable
from bot.cli.terminal.conversation import Conversation, ShownPosition
from bot.cli.terminal.plain import read_lines, talk
from tests.asking import AskingTool
from tests.bot.gateway.house import PATIENCE, House, house

CONSOLE = "agent:main:console:direct:local"


async def typed(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        yield text


async def said(client: Client, *texts: str, shown: Path = Path(os.devnull)) -> str:
    """What comes out when these lines go in."""
    out = io.StringIO()
    async with asyncio.timeout(PATIENCE):
        await talk(Conversation(client, ShownPosition(shown)), typed(*texts), out)
    return out.getvalue()


async def test_lines_are_answered_in_order_and_the_last_one_too(at: House) -> None:
    client = Client(at.socket)
    talking = asyncio.create_task(said(client, "one", "", "two"))
    for number in ("one", "two"):
        call = await at.model.called()
        assert call.request.messages[-1].text.endswith(f"\n{number}")
        call.answer(f"Answer to **{number}**.\n\nWith two paragraphs.\n")
    expected = "".join(f"Answer to **{number}**.\n\nWith two paragraphs.\n" for number in ("one", "two"))
    assert await talking == expected
    await client.aclose()


async def test_a_long_answer_comes_as_it_was_written(tmp_path: Path) -> None:
    answer = "```python\n" + "".join(f"line({number})\n" for number in range(500)) + "```\n\nThe end."
    async with house(tmp_path, reply=answer) as at:
        client = Client(at.socket)
        assert await said(client, "go") == f"{answer}\n"
        assert len(at.stored.deliveries()) > 1
        await client.aclose()


async def test_a_command_is_answered_too(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Yes.") as at:
        client = Client(at.socket)
        shown = await said(client, "/status", "there?")
        assert "- **Model** test/puppet\n" in shown
        assert shown.endswith("\nYes.\n")
        await client.aclose()


async def test_a_script_decides(tmp_path: Path) -> None:
    """A line is read as well when the one before it is asked about, and the end of the input waits for the answer."""
    tool = AskingTool()
    async with house(tmp_path, besides=[tool]) as at:
        client = Client(at.socket)
        talking = asyncio.create_task(said(client, "do it", "y", "and now?"))
        (await at.model.called()).finish("", ToolCall("c1", "ask", '{"label": "it"}'))
        (await at.model.called()).answer("Done.")
        (await at.model.called()).answer("Nothing.")
        shown = await talking
        assert tool.begun == ["it"]
        assert shown.startswith("🔐 **May I run this?**")
        assert shown.endswith("Done.\nNothing.\n")
        await client.aclose()


async def test_what_a_model_writes_has_no_control_over_the_terminal(tmp_path: Path) -> None:
    async with house(tmp_path, reply="red \x1b[31mtitle\x1b]0;x\x07 back\u202ewards") as at:
        client = Client(at.socket)
        assert await said(client, "go") == "red [31mtitle]0;x backwards\n"
        await client.aclose()


async def test_what_was_said_before_comes_first(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Early.") as at:
        client = Client(at.socket)
        run_id = await client.submit("x", CONSOLE, "k")
        assert (await client.wait(run_id, PATIENCE)).ended_at
        at.model.reply = "Late."
        shown = tmp_path / "shown"
        assert await said(client, "go", shown=shown) == "While you were away:\nEarly.\nLate.\n"
        assert await said(client, "again", shown=shown) == "Late.\n"
        await client.aclose()


async def test_a_message_that_is_refused_is_the_end(at: House) -> None:
    client = Client(at.socket)
    await at.store_fails()
    with pytest.raises(Rejected, match="The store cannot write"):
        await said(client, "hello")
    await client.aclose()


async def test_a_service_that_goes_away_is_the_end(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        client = Client(at.socket)
        talking = asyncio.create_task(said(client, "hello"))
        await at.model.called()
    with pytest.raises(Unreachable):
        await talking
    await client.aclose()


async def test_there_is_no_client_without_a_folder(tmp_path: Path) -> None:
    client = Client(tmp_path / "hark.sock")
    with pytest.raises(Unreachable):
        await client.readiness()
    await client.aclose()


@contextmanager
def a_pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    try:
        yield read, write
    finally:
        os.close(read)


async def test_lines_come_from_a_pipe_however_they_were_written() -> None:
    with a_pipe() as (read, write):
        found = read_lines(read)
        os.write(write, b"on")
        os.write(write, b"e\r\ntwo\n\xff\nlast")
        os.close(write)
        assert [line async for line in found] == ["one", "two", "\ufffd", "last"]


async def test_lines_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("\n".join(str(number) for number in range(1000)))
    descriptor = os.open(file, os.O_RDONLY)
    assert [line async for line in read_lines(descriptor)] == [str(number) for number in range(1000)]
    os.close(descriptor)
