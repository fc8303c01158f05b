"""What a terminal reads: events of its session, sentences of the service among them, and what it begins with."""

from pathlib import Path
from typing import Any

from channels.session_key import console_key
from tests.bot.gateway.house import TOKEN, House, Sent, house

EVENTS = f"/v1/events?session={console_key()}&last_event_id="
END = 10**12
"""A position beyond all that was given is not known."""


def words(events: list[Sent]) -> list[tuple[str, str]]:
    """What people read of them."""
    found = {"agent_start": "message", "message_end": "text", "notice": "detail"}
    return [(sent.event, sent.data[found[sent.event]]) for sent in events if sent.event in found]


async def begins(at: House, position: int) -> Any:
    async with at.unix() as unix:
        return (await unix.get(f"/v1/console?position={position}")).json()


async def say(at: House, text: str, *, ended: bool = True) -> str:
    async with at.unix() as unix:
        response = await unix.post("/v1/agent", json={"message": text, "session": console_key()})
    run = str(response.json()["run_id"])
    if ended:
        await at.show(run, wait="20")
    return run


async def test_a_terminal_reads_questions_answers_and_what_the_service_says(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at, at.unix() as unix, at.events(f"{EVENTS}0", client=unix) as terminal:
        run = await say(at, "hello", ended=False)
        (await at.model.called()).answer("Hello, terminal.")
        seen = await terminal.until("agent_end")
        assert [sent.event for sent in seen if sent.event != "message_update"] == [
            "agent_start",
            "message_start",
            "message_end",
            "agent_end",
        ]
        assert words(seen) == [("agent_start", "hello"), ("message_end", "Hello, terminal.")]
        assert (await at.show(run, wait="20"))["session"] == console_key()
        await say(at, "/help")
        notice, end = await terminal.until("agent_end")
        assert (notice.event, notice.data["kind"], end.data["outcome"]) == ("notice", "said", "completed")
        assert "Alt-Enter" in notice.data["detail"]
        assert len(at.stored.deliveries(state="sent")) == 2


async def test_a_failed_run_is_told_before_its_end(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at, at.unix() as unix, at.events(f"{EVENTS}0", client=unix) as terminal:
        await say(at, "hello", ended=False)
        (await at.model.called()).fail(ZeroDivisionError("a fault"))
        seen = await terminal.until("agent_end")
        assert [sent.event for sent in seen] == ["agent_start", "message_start", "notice", "agent_end"]
        assert seen[2].data["detail"].startswith("Something went wrong on my side")


async def test_what_was_said_meanwhile_is_read_once_by_each_terminal(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, reply="Here.") as at, at.unix() as unix:
        await say(at, "hi")
        async with at.events(f"{EVENTS}0", client=unix) as terminal, at.events(f"{EVENTS}0", client=unix) as other:
            seen = await terminal.until("agent_end")
            assert (
                words(seen)
                == [("agent_start", "hi"), ("message_end", "Here.")]
                == words(await other.until("agent_end"))
            )
            await say(at, "again")
            for stream in (terminal, other):
                assert words(await stream.until("agent_end")) == [("agent_start", "again"), ("message_end", "Here.")]
        async with at.events(f"{EVENTS}{seen[-1].id}", client=unix) as terminal:
            assert words(await terminal.until("agent_end")) == [("agent_start", "again"), ("message_end", "Here.")]


async def test_the_last_exchange_is_what_was_shown_of_it(tmp_path: Path) -> None:
    long = "A sentence that stands. " * 60
    async with house(tmp_path, token=TOKEN) as at, at.unix() as unix:
        assert await begins(at, 0) == {"position": 0, "last": None}
        async with at.events(f"{EVENTS}0", client=unix) as terminal:
            at.model.reply = "Four."
            await say(at, "two and two?")
            first = await terminal.until("agent_end")
            at.model.reply = None
            await at.model.called()
            run = await say(at, "tell", ended=False)
            call = await at.model.called()
            call.say(f"{long}\n\nAnd")
            second = await terminal.until("message_update")
            four = {"question": "two and two?", "answer": "Four."}
            assert (await begins(at, int(first[-1].id or 0)))["last"] == four
            assert (await begins(at, int(first[1].id or 0)))["last"] == {**four, "answer": ""}
            begun = int(second[1].id or 0)
            assert await begins(at, begun) == {"position": begun, "last": {"question": "tell", "answer": ""}}
            call.say(" so on.")
            call.finish(f"{long}\n\nAnd so on.")
            await at.show(run, wait="20")
            assert (await begins(at, begun))["last"]["answer"] == ""
            rest = await terminal.until("agent_end")
            assert (await begins(at, int(rest[-1].id or 0)))["last"]["answer"] == f"{long}\n\nAnd so on."
        assert (await begins(at, END))["position"] == 0
        await say(at, "/new")
        assert (await begins(at, int(rest[-1].id or 0)))["last"] is None


async def test_over_the_port_there_is_no_terminal(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, reply="For you.") as at:
        assert (await at.http.get("/v1/console")).status_code == 404
        async with at.unix() as unix, at.events(f"{EVENTS}0", client=unix) as terminal:
            run = await at.submit("hello", session=console_key())
            assert (await at.show(run, wait="20"))["text"] == "For you."
            assert words(await terminal.until("agent_end")) == [("agent_start", "hello"), ("message_end", "For you.")]
        async with at.events() as stream:
            await at.submit("hello")
            assert words(await stream.until("agent_end")) == [("agent_start", ""), ("message_end", "For you.")]
