"""The stream of a terminal: blocks and events together, and blocks that wait until a terminal is open."""

from pathlib import Path

from channels.session_key import console_key
from tests.bot.gateway.house import TOKEN, house


async def test_a_terminal_gets_blocks_and_events(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at, at.unix() as unix, at.events("/v1/console", client=unix) as terminal:
        response = await unix.post("/v1/agent", json={"message": "hello", "session": console_key()})
        run = response.json()["run_id"]
        (await at.model.called()).answer("Hello, terminal.")
        seen = await terminal.until("block")
        while "agent_end" not in {sent.event for sent in seen}:
            seen += await terminal.until("agent_end")
        (block,) = (sent for sent in seen if sent.event == "block")
        assert block.data["text"] == "Hello, terminal."
        assert block.data["source"].startswith(f"turn:{run}:")
        assert block.id is None
        events = [sent for sent in seen if sent.event != "block"]
        assert [sent.event for sent in events if sent.event != "message_update"] == [
            "question",
            "agent_start",
            "message_start",
            "message_end",
            "agent_end",
        ]
        assert (await at.show(run, wait="20"))["session"] == console_key()


async def test_blocks_wait_for_a_terminal_and_go_to_all_that_are_open(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, reply="Here.") as at, at.unix() as unix:
        async with at.events("/v1/console", client=unix) as first:
            await first.next()
        run = (await unix.post("/v1/agent", json={"message": "hi", "session": console_key()})).json()["run_id"]
        assert (await at.show(run, wait="20"))["status"] == "ok"
        async with at.events("/v1/console", client=unix) as terminal:
            question, block = await terminal.until("block")
            assert (question.data["text"], question.data["answer"]) == ("hi", "")
            assert block.data["text"] == "Here."
            async with at.events("/v1/console", client=unix) as other:
                await unix.post("/v1/agent", json={"message": "again", "session": console_key()})
                texts = [(await stream.until("block"))[-1].data["text"] for stream in (terminal, other)]
                assert texts == ["Here.", "Here."]


async def test_over_the_port_there_is_no_terminal(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, reply="For you.") as at:
        assert (await at.http.get("/v1/console")).status_code == 404
        async with at.unix() as unix, at.events("/v1/console", client=unix) as terminal:
            run = await at.submit("hello", session=console_key())
            assert (await at.show(run, wait="20"))["text"] == "For you."
            seen = await terminal.until("agent_end")
            assert "block" not in {sent.event for sent in seen}
