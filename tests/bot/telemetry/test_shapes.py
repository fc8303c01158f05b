"""Keys and tokens that nobody has configured are known by their look, also in pieces, in JSON and without their end."""

import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Message, Text, Thinking, ToolCall, Usage
from agent.models.base import (
    Answer,
    ArgumentsDelta,
    ModelClient,
    ModelRequest,
    StreamPart,
    TextDelta,
    ThinkingDelta,
)
from bot.cli.terminal.prompt import _History
from bot.telemetry.masked import MaskedClient
from bot.telemetry.redact import MASK, Redactor, mask_text
from tests.bot.telemetry.kinds import KINDS, NAMED

REDACTOR = Redactor(["known-value-1234", 'with "quotes" and ü'])


@pytest.mark.parametrize("name", KINDS)
def test_it_is_replaced_whole(name: str) -> None:
    assert REDACTOR.clean(f"see {KINDS[name]} there") == f"see {MASK} there"
    assert KINDS[name][-12:] not in mask_text(f"see {KINDS[name]} there")
    written = REDACTOR.clean(json.dumps({"text": f"first\n{KINDS[name]}\nlast"}))
    assert json.loads(written) == {"text": f"first\n{MASK}\nlast"}


@pytest.mark.parametrize("name", KINDS)
def test_it_is_replaced_wherever_it_is_cut(name: str) -> None:
    whole = f"see {KINDS[name]} there, and {KINDS[name]}"
    for seed in range(100):
        random, held, shown, rest = Random(seed), "", "", whole
        while rest:
            size = random.choice((1, 2, 3, 7, 20, 50))
            held, rest = held + rest[:size], rest[size:]
            certain = len(held) - REDACTOR.withheld(held)
            shown, held = shown + REDACTOR.clean(held[:certain]), held[certain:]
        assert shown + REDACTOR.clean(held) == f"see {MASK} there, and {MASK}", f"seed {seed}"


@pytest.mark.parametrize(
    "text", ["aws_secret_access_key = {}", '{{"SecretAccessKey": "{}"}}', "SECRET_ACCESS_KEY='{}'"]
)
def test_one_that_only_its_name_tells_is_replaced_and_the_name_stays(text: str) -> None:
    given = text.format(NAMED)
    assert REDACTOR.clean(given) == text.format(MASK)
    for cut in range(1, len(given)):
        certain = cut - REDACTOR.withheld(given[:cut])
        assert REDACTOR.clean(given[:certain]) + REDACTOR.clean(given[certain:]) == text.format(MASK)


def test_a_private_key_without_its_end_and_with_numbers_of_lines_is_replaced() -> None:
    lines = KINDS["PEM"].splitlines()
    assert REDACTOR.clean("\n".join(lines[:4])) == MASK
    numbered = "\n".join(f"{number:>4}\t{line}" for number, line in enumerate(lines[:-1], 1))
    assert REDACTOR.clean(numbered).strip() == f"1\t{MASK}"


def test_known_values_are_found_as_json_writes_them() -> None:
    for ascii_only in (True, False):
        written = json.dumps({"a": 'with "quotes" and ü'}, ensure_ascii=ascii_only)
        assert json.loads(REDACTOR.clean(written)) == {"a": MASK}


def test_ordinary_words_stay() -> None:
    text = (
        "task-1234567890abcdefgh sk-lorem-ipsum-dolor-sit-amet AKIA eyJ -----BEGIN PUBLIC KEY----- "
        "019f5eafb0007091ba47d86019fbf155 https://github.com/a/b/pull/12 -----BEGIN CERTIFICATE-----"
    )
    assert REDACTOR.clean(text) == text
    assert REDACTOR.withheld("this is a number") == 0


class Speaking(ModelClient):
    """A model that says what the test says."""

    def __init__(self, parts: list[StreamPart | ModelError]) -> None:
        self.name, self.context_window, self.max_output, self.thinks = "test/said", 1000, 1000, False
        self.parts, self.requests = parts, list[ModelRequest]()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        self.requests.append(request)
        for part in self.parts:
            if isinstance(part, ModelError):
                raise part
            yield part


def request(text: str = "hello", system: str = "") -> ModelRequest:
    return ModelRequest(system=system, messages=(Message("user", (Text(text),)),), tools=(), max_output=10)


async def test_a_model_is_neither_told_nor_says_one() -> None:
    key = KINDS["GitHub"]
    arguments = json.dumps({"text": f"a {key}"})
    message = Message(
        "assistant", (Thinking(f"t {key}", "signed"), Text(f"w {key}"), ToolCall("1", "write", arguments))
    )
    cut = [key[:5], key[5:]]
    model = Speaking(
        [
            ThinkingDelta("t " + cut[0]),
            ThinkingDelta(cut[1]),
            TextDelta("w " + cut[0]),
            TextDelta(cut[1]),
            ArgumentsDelta("1", "write", ""),
            ArgumentsDelta("1", "write", arguments),
            Answer(message, "end", Usage()),
        ]
    )
    parts = [part async for part in MaskedClient(model, REDACTOR).stream(request(f"use {key}", f"system {key}"))]
    for kind, said in ((ThinkingDelta, f"t {MASK}"), (TextDelta, f"w {MASK}")):
        assert "".join(part.text for part in parts if isinstance(part, kind)) == said
    answer = parts[-1]
    assert isinstance(answer, Answer)
    masked = arguments.replace(key, MASK)
    assert answer.message.parts == (Thinking(f"t {MASK}"), Text(f"w {MASK}"), ToolCall("1", "write", masked))
    assert "".join(part.text for part in parts if isinstance(part, ArgumentsDelta)) == masked
    (asked,) = model.requests
    assert (asked.system, asked.messages[0].text) == (f"system {MASK}", f"use {MASK}")


async def test_what_has_no_secret_stays_the_same_object() -> None:
    model = Speaking([answer := Answer(Message("assistant", (Text("hi"),)), "end", Usage())])
    asked = request()
    (said,) = [part async for part in MaskedClient(model, REDACTOR).stream(asked)]
    assert said is answer
    assert model.requests[0] is asked


async def test_an_error_of_a_model_names_none() -> None:
    model = Speaking([ModelError(ErrorKind.AUTH, f"bad key {KINDS['Anthropic']}", 3.0, 401)])
    with pytest.raises(ModelError) as raised:
        async for _ in MaskedClient(model, REDACTOR).stream(request()):
            pass
    error = raised.value
    assert (error.kind, error.detail, error.retry_after, error.status) == (ErrorKind.AUTH, f"bad key {MASK}", 3.0, 401)
    assert error.__cause__ is None


def test_what_is_typed_in_a_terminal_is_kept_without_one(tmp_path: Path) -> None:
    _History(tmp_path / "history", print).store_string(f"use {KINDS['OpenAI']}")
    assert (tmp_path / "history").read_text().splitlines()[-1] == f"+use {MASK}"


@pytest.mark.parametrize(
    "text", ["eyJ", "sk-", "-----BEGIN RSA PRIVATE KEY----- b\n", f"{KINDS['PEM'][:100]}\n", "secret_access_key = "]
)
def test_nobody_can_write_what_takes_long_to_look_at(text: str) -> None:
    """Counted in processor time, of which the worst patterns took 20 seconds."""
    whole, begun = text * (100_000 // len(text)), time.thread_time()
    REDACTOR.withheld(whole)
    assert time.thread_time() - begun < 5
