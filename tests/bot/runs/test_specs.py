"""What a run is made of is decided for each turn, and its model for each step."""

from pathlib import Path

import pytest

from agent.tools.base import RunContext
from agent.tools.files import MARK
from bot import wording
from bot.people.access import OWNER, PERSON
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.turns import Turn, TurnKind
from bot.runs.runner import Presentation
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.session_key import http_key
from tests.asking import AskingTool, SendingTool, Workbench
from tests.bot.store.opened import accept_and_claim, opened
from tests.scripted_model import ScriptedModel
from tests.service import ScriptedTool, running, session_of
from tests.standins.script import Call, Fail
from tests.watch import lanes_idle


class OtherModel(ScriptedModel):
    name = "test/other"


@pytest.mark.parametrize(
    ("kind", "turn_kind"),
    [
        (InboundKind.MESSAGE, TurnKind.REPLY),
        (InboundKind.WAKE, TurnKind.BEAT),
        (InboundKind.JOB, TurnKind.JOB),
        (InboundKind.CHILD, TurnKind.CHILD),
    ],
)
async def test_a_turn_knows_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: InboundKind, turn_kind: TurnKind
) -> None:
    asked: list[Turn] = []
    shown = Presentation.shown
    monkeypatch.setattr(Presentation, "shown", lambda self, turn: asked.append(turn) or shown(self, turn))
    async with running(tmp_path) as hark:
        await hark.write("hello", kind=kind)
        await hark.until_texts(1)
    assert [turn.kind for turn in asked] == [turn_kind]


async def test_memory_is_marked_that_beats_and_jobs_write(tmp_path: Path) -> None:
    kinds = (InboundKind.MESSAGE, InboundKind.WAKE, InboundKind.JOB, InboundKind.CHILD)
    async with running(tmp_path) as hark:
        for number, kind in enumerate(kinds, 1):
            hark.model.add(Call("write", {"path": "memory/notes.md", "content": f"- {kind}\n", "mode": "append"}))
            hark.model.add(f"number {number}")
            await hark.write("look around", kind=kind)
            await hark.until_texts(number)
    written = (tmp_path / "workspace" / "memory" / "notes.md").read_text()
    assert written.splitlines() == ["- message", f"- wake {MARK}", f"- job {MARK}", "- child"]


async def test_tools_are_made_for_each_run_and_closed_with_it(tmp_path: Path) -> None:
    made: list[SendingTool] = []

    def make(run: RunContext) -> list[SendingTool]:
        made.append(SendingTool(lambda: hark.service, seen))
        return made[-1:]

    async def seen() -> None:
        assert bench.open == 1

    bench = Workbench(make)
    async with running(tmp_path, factories=[bench.factory]) as hark:
        hark.model.add(Call("send", {"label": "hello"}))
        hark.model.add("first")
        assert (await hark.say("send it")).texts == ["hello", "first"]
        reply = await hark.say("and again", answers=["second"])
        await lanes_idle()
    assert (len(made), bench.open) == (2, 0)
    assert made[0].fate in ("planned", "sent")
    workspace = bench.runs[1].workspace
    assert workspace.root == tmp_path / "workspace"
    assert bench.runs[1] == RunContext(
        turn_id=reply.end.run.turn_id,
        session_key=session_of("1"),
        transcript_id=bench.runs[0].transcript_id,
        trusted=True,
        workspace=workspace,
    )
    offered = {request.tools for request in hark.model.requests}
    assert len(offered) == 1, "the same to the byte in all requests of a transcript"
    assert "send" in [tool.name for tool in next(iter(offered))]


@pytest.mark.parametrize("end", ["parked", "failed"])
async def test_tools_are_closed_however_the_run_ends(tmp_path: Path, end: str) -> None:
    bench = Workbench(lambda run: [AskingTool()])
    async with running(tmp_path, factories=[bench.factory]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}) if end == "parked" else Fail(400)])
        await hark.until(lambda: hark.ends(session_of("1")), "the end of the run")
        await lanes_idle()
        assert (len(bench.runs), bench.open) == (1, 0)


async def test_a_factory_that_fails_is_told_as_a_fault_of_the_service(tmp_path: Path) -> None:
    def fail(run: RunContext) -> list[SendingTool]:
        raise RuntimeError("no workbench")

    async with running(tmp_path, factories=[Workbench(fail).factory]) as hark:
        assert (await hark.say("hello")).texts == [wording.INTERNAL_ERROR]


def program(text: str, sender: str) -> InboundMessage:
    """A text of a program that the gateway let in as somebody."""
    place = Place(channel="http", account="", chat="x", kind=ChatKind.API)
    return InboundMessage(
        origin=Origin(place=place, sender=sender), event_key=f"h:{text}", kind=InboundKind.API, text=text, sent_at=0
    )


@pytest.mark.parametrize(("second", "offered"), [(OWNER, True), (PERSON, False)])
async def test_a_turn_has_the_tools_of_whom_it_trusts_least(tmp_path: Path, second: str, offered: bool) -> None:
    async with opened(tmp_path / "state") as store:
        asked = AcceptedMessage(message=program("one", OWNER), session_key=http_key("x"), turn_id="t1")
        await store.inbox.accept([asked])
        assert await store.inbox.steer("t1", program("two", second))

    async def act(label: str) -> str:
        return "done"

    class Risky(ScriptedTool):
        trusted_only = True

    bench = Workbench(lambda run: [])
    async with running(tmp_path, tools=lambda watch: [Risky("risk", act, watch)], factories=[bench.factory]) as hark:
        request = await hark.model.until_requests(1)
        assert ("risk" in [tool.name for tool in request.tools]) is offered
        assert [run.trusted for run in bench.runs] == [offered], "what makes tools is told the same"
        await lanes_idle()


@pytest.mark.parametrize(("second", "explained"), [(OWNER, True), (PERSON, False)])
async def test_a_failure_is_explained_if_only_owners_asked(tmp_path: Path, second: str, explained: bool) -> None:
    async with opened(tmp_path / "state") as store:
        turn = await accept_and_claim(store, "one")
        assert await store.inbox.steer(turn.turn_id, program("two", second))
        await store.turns.release(turn.run)
    async with running(tmp_path) as hark:
        hark.model.add(Fail(400, message="no such thing"))
        (told,) = await hark.until_texts(1)
        assert ("no such thing" in told) is explained
