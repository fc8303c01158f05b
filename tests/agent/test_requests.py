"""The last request of each transcript is remembered, and what spoiled the provider's cache is found and logged once."""

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.message import Message, Text, ToolSpec, Usage
from agent.models.base import ModelRequest
from agent.prompt import requests
from agent.prompt.build import Prompt, Section
from agent.prompt.requests import CACHED_FOR, Requests
from tests.scripted_model import ScriptedModel

PROMPT = Prompt((Section("identity", "You are."), Section("SOUL.md", "Kind.", is_file=True)))
TOOLS = (ToolSpec("read", "Reads.", "{}"), ToolSpec("write", "Writes.", "{}"))
TALK = tuple(Message("user", (Text(f"number {number}"),)) for number in range(4))
FIRST = ModelRequest(system=PROMPT.text, messages=TALK[:2], tools=TOOLS, max_output=10)
NEXT = replace(FIRST, messages=TALK)
WRITTEN, MISSED = Usage(1000, 1, 0, 1000), Usage(1200, 1, 0, 1200)


class Told:
    """The requests of one transcript, and what the log says of them."""

    def __init__(self) -> None:
        self.now = 0
        self.requests = Requests(lambda: self.now)

    def send(self, request: ModelRequest, usage: Usage | None, prompt: Prompt = PROMPT, **given: Any) -> list[str]:
        """Send a request and have it answered; returns what is logged as changed."""
        kept = {"transcript_id": "t", "background": False, "model": ScriptedModel(), "start": 1, "tokens": 10} | given
        with capture_logs() as lines:
            answered = self.requests.sent(session_key="s", prompt=prompt, request=request, **kept)
            if usage is not None:
                answered(usage)
        return [line["changed"] for line in lines]


OTHER = Prompt((Section("identity", "You are."), Section("SOUL.md", "Stern.", is_file=True)))


@pytest.mark.parametrize(
    ("request_", "prompt", "changed"),
    [
        (NEXT, PROMPT, "nothing: the provider has dropped it"),
        (replace(NEXT, system=OTHER.text), OTHER, "file SOUL.md"),
        (replace(NEXT, tools=TOOLS[:1]), PROMPT, "tool write"),
        (replace(NEXT, tools=TOOLS[::-1], system=OTHER.text), OTHER, "tool read"),
        (replace(NEXT, messages=(TALK[0], *TALK[2:])), PROMPT, "message 2"),
        (replace(NEXT, messages=TALK[:1]), PROMPT, "message 2"),
        (replace(NEXT, thinking="high", messages=TALK[1:]), PROMPT, "setting thinking"),
        (replace(NEXT, allow_calls=False), PROMPT, "setting whether calls are allowed"),
    ],
)
def test_the_log_says_which_part_changed_first(request_: ModelRequest, prompt: Prompt, changed: str) -> None:
    told = Told()
    assert told.send(FIRST, WRITTEN) == []
    assert told.send(request_, MISSED, prompt) == [changed]
    assert told.send(request_, Usage(1300, 1, 1200, 100), prompt) == [], "once"


def test_nothing_is_said_of_what_is_as_expected() -> None:
    changed: dict[str, Any] = {"request": replace(NEXT, messages=TALK[1:])}
    for name, after in {
        "the provider caches nothing": {"before": Usage(1000, 1), "usage": Usage(1200, 1)},
        "it was read": {"usage": Usage(1200, 1, 1000, 200)},
        "it was read but for what rounding leaves": {"usage": Usage(1200, 1, 896)},
        "the one before was never answered": {"before": None},
        "another model": {"model": named("other/model")},
        "a beat in between": {"background": True},
        "another transcript": {"transcript_id": "u"},
        "the conversation was shortened": changed | {"start": 2},
        "it was too long ago": {"later": CACHED_FOR + 1},
    }.items():
        told, given = Told(), dict(after)
        told.send(FIRST, given.pop("before", WRITTEN))
        told.now += given.pop("later", 0)
        request = given.pop("request", replace(NEXT, messages=TALK[1:]))
        assert told.send(request, given.pop("usage", MISSED), **given) == [], name
    told = Told()
    told.send(FIRST, WRITTEN)
    told.now = CACHED_FOR
    assert told.send(replace(NEXT, tools=()), MISSED, start=2) == ["tool read"], "shortening changes messages alone"


def named(name: str) -> ScriptedModel:
    model = ScriptedModel()
    model.name = name
    return model


def test_the_last_request_is_known_before_it_is_answered_and_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    told.send(FIRST, None)
    last = told.requests.last("t")
    assert last is not None
    assert (last.request, last.usage, last.at) == (FIRST, None, 0)
    told.send(FIRST, WRITTEN, background=True)
    assert told.requests.last("t") is last
    assert told.requests.last("u") is None
    monkeypatch.setattr(requests, "MAX_TOKENS", 100)
    for number in range(30):
        told.send(FIRST, WRITTEN, transcript_id=str(number), tokens=20)
    assert [number for number in range(30) if told.requests.last(str(number))] == [25, 26, 27, 28, 29]
    told.send(FIRST, WRITTEN, transcript_id="large", tokens=1000)
    assert told.requests.last("29") is None
    assert told.requests.last("large") is not None


def test_a_prompt_that_is_not_the_one_of_the_request_is_one_part() -> None:
    told = Told()
    told.send(replace(FIRST, system="Something else."), None)
    last = told.requests.last("t")
    assert last is not None
    assert [part.name for part in last.parts][2:3] == ["whole"]
