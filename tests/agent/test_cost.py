"""What a streamed token and an earlier turn of the transcript cost: function calls of the agent, counted.

The figures are those of the day they were written, with a little room. Where one rises there should be a reason.
"""

import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from json import dumps
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

import agent
from agent.context import Context
from agent.events import AgentEnd, MessageUpdate, Outcome, RunRef
from agent.hooks import NO_HOOKS
from agent.images import Images
from agent.journal import Journal, Kept, Step
from agent.loop import Loop
from agent.message import Entry, EntryKind, Message, Text, ToolCall, ToolResult, Usage
from agent.models import anthropic, openai_chat
from agent.models.base import ModelApi
from agent.models.fleet import Fleet, Rest, Route
from agent.models.sdk import SdkClient
from agent.origins import OriginRules
from agent.spec import CallRules, Limits, Progress, RunSpec, ToolSet
from agent.tools.output import Overflow
from agent.tools.registry import tools_for
from agent.tools.schema import specs
from agent.tools.workspace import Workspace
from agent.window import Compaction, CompactionRules, Keeper, Scale
from tests.agent.models.makers import spec

ROOT = str(Path(agent.__file__).parent)
RUN = RunRef(run_id="r", turn_id="now", session_key="k", attempt=1)
Calls = Counter[tuple[str, str]]


def openai_stream(tokens: int) -> Iterator[bytes]:
    for number in range(tokens):
        choice = {"index": 0, "delta": {"content": f"word{number} "}, "logprobs": None, "finish_reason": None}
        yield b"data: %b\n\n" % dumps({"object": "chat.completion.chunk", "choices": [choice]}).encode()
    yield b"data: %b\n\n" % dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).encode()
    yield b"data: [DONE]\n\n"


def anthropic_stream(tokens: int) -> Iterator[bytes]:
    def event(kind: str, **values: object) -> bytes:
        return f"event: {kind}\ndata: {dumps({'type': kind, **values})}\n\n".encode()

    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for number in range(tokens):
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": f"word{number} "})
    yield event("message_delta", delta={"stop_reason": "end_turn"})
    yield event("message_stop")


class Sdk:
    """Answers every request with the same stream."""

    def __init__(self, events: list[bytes]) -> None:
        self.events = events

    async def post(self, *args: object, **options: object) -> "Sdk":
        return self

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for event in self.events:
            yield event

    async def aclose(self) -> None:
        """Nothing is open."""


class Forgetful:
    """A journal that keeps nothing."""

    async def reserve(self, model: str, most: Usage) -> None:
        """There is no budget."""

    def begin(self, step: int, after: str) -> None:
        """Nothing to do."""

    async def answers(self, model: str, wanted: str) -> None:
        """There is only one."""

    async def refuses(self, model: str, parts: Mapping[str, str]) -> None:
        """Nothing is refused."""

    async def update(self, event: MessageUpdate) -> None:
        """Nobody is told."""

    async def rest(self, rest: Rest) -> None:
        """No key rests here."""

    async def step(self, step: Step) -> Kept:
        end = AgentEnd(run=RUN, at=1, outcome=Outcome.COMPLETED, model="m", usage=step.usage, duration=0)
        return Kept((), end)


RULES = CompactionRules(threshold=0.6, reserve=20_000, keep=20_000, attempts=3, timeout=60, model="")


def no_summary() -> Route:
    raise AssertionError("everything fits")


def transcript(turns: int) -> Iterator[Entry]:
    """Earlier turns of a question, a call with its result and an answer, and the question of this one."""
    lines: list[tuple[EntryKind, str, Message]] = []
    for number in range(turns):
        call = ToolCall(f"c{number}", "read", '{"path": "a"}')
        lines += [
            ("user", f"t{number}", Message("user", (Text("question"),))),
            ("assistant", f"t{number}", Message("assistant", (Text("I look."), call), "house/some-model")),
            ("tool_result", f"t{number}", Message("tool", (ToolResult(call.call_id, "read", "a"),))),
            ("assistant", f"t{number}", Message("assistant", (Text("answer"),), "house/some-model")),
        ]
    for seq, (kind, turn_id, message) in enumerate([*lines, ("user", "now", Message("user", (Text("q"),)))], 1):
        yield Entry(seq=seq, kind=cast(EntryKind, kind), message=message, tokens=5, turn_id=turn_id)


async def counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, api: ModelApi, *, tokens: int = 20, turns: int = 1
) -> Calls:
    """The calls of one step of the loop, by file and function, those of C functions out of ours among them."""
    made: type[SdkClient] = openai_chat.Client if api == "openai-chat" else anthropic.Client
    stream: Callable[[int], Iterator[bytes]] = openai_stream if api == "openai-chat" else anthropic_stream
    client = made(spec(api))
    monkeypatch.setattr(client, "_open_sdk", lambda: Sdk(list(stream(tokens))))
    await client.preload()
    tools, workspace = tools_for(Workspace(folder)), Workspace(folder)
    run = RunSpec(
        ref=RUN,
        route=Route(
            Fleet(lambda name: [client], (), lambda: 1, Forgetful().rest, Forgetful().refuses), client.name, "session"
        ),
        system="s",
        origins=(),
        limits=Limits(),
        tools=ToolSet(by_name={tool.name: tool for tool in tools}, specs=specs(tools), refused={}, as_guest=()),
        rules=CallRules(
            asked_for=(),
            grants=tuple,
            hooks=NO_HOOKS,
            origins=OriginRules(untrusted=(), trusts=lambda channel, sender: True),
        ),
        transcript_id="t",
        progress=Progress(step=0, usage=Usage(), ran=0, decisions={}),
        images=Images(workspace),
        overflow=Overflow(workspace),
        now=lambda: 1,
        sleep=lambda seconds: client.preload(),
        sent=lambda *given: lambda usage: None,
        for_owners=True,
        compaction=Compaction(rules=RULES, scale=Scale(), keeper=cast(Keeper, Forgetful()), summing=no_summary),
        background=False,
        may_be_empty=False,
    )
    loop = Loop(run, Context(transcript(turns)), cast(Journal, Forgetful()))
    found: Calls = Counter()

    def count(frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_call") and frame.f_code.co_filename.startswith(ROOT):
            found[frame.f_code.co_filename.removeprefix(ROOT), frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        await loop.run()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("api", ["openai-chat", "anthropic"])
async def test_a_token_costs_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: ModelApi) -> None:
    few, many = [await counted(tmp_path, monkeypatch, api, tokens=tokens) for tokens in (20, 220)]
    assert (many.total() - few.total()) / 200 < 42


@pytest.mark.parametrize("api", ["openai-chat", "anthropic"])
async def test_only_the_request_walks_over_earlier_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: ModelApi
) -> None:
    few, many = [await counted(tmp_path, monkeypatch, api, turns=turns) for turns in (5, 35)]
    more = {where for where, calls in many.items() if calls > few[where]}
    assert {file for file, _ in more} <= {
        "/message.py",
        "/models/protocol.py",
        "/models/openai_chat.py",
        "/models/anthropic.py",
    }
    assert (many.total() - few.total()) / 30 < 50
