"""Parts of a request that a provider refuses for ever: each report of docs/known-reports.md that is of this kind.

Through the real SDKs. The stand-ins have rules of real providers beside their own, in the words of those providers.
"""

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from agent.errors import ModelError
from agent.message import Image, Message, Part, Thinking, ToolResult, ToolSpec
from agent.models.base import Answer, LeftOut, ModelApi, Refused, ThinkingLevel
from bot.telemetry.masked import MaskedClient
from bot.telemetry.redact import Redactor
from tests.agent.models.makers import READ, assistant, call, request, results, user
from tests.standins.script import Fail, Say
from tests.wire.model_clients import KEY, MODELS, client_of, listen
from tests.wire.test_model_clients import SERVERS

Json = dict[str, Any]
Rule = Callable[[Json], Fail | None]


def png(width: int, height: int, *, end: bool = True, shade: int = 0) -> Image:
    """A picture of one colour, with or without its end."""
    lines = zlib.compress((b"\0" + bytes([shade]) * width) * height)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    content = head + chunk(b"IDAT", lines) + (chunk(b"IEND", b"") if end else b"")
    return Image("image/png", base64.b64encode(content).decode())


GOOD, TALL, CUT, BLACK = png(4, 4), png(1, 9000), png(4, 4, end=False, shade=7), png(5, 5, shade=9)


def blocks(value: Any, path: str = "") -> Iterator[tuple[str, Json]]:
    """Each object of a body, with its place as Anthropic writes it, the outer ones first."""
    if isinstance(value, dict):
        yield path, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from blocks(inner, f"{path}.{key}".strip("."))


def forbids(found: Callable[[Json], object], words: str, status: int = 400) -> Rule:
    """A rule for objects of a body; {at} in its words is the place."""

    def rule(body: Json) -> Fail | None:
        at = next((at for at, block in blocks(body) if found(block)), None)
        return None if at is None else Fail(status, message=words.replace("{at}", at))

    return rule


def shows(image: Image) -> Callable[[Json], object]:
    return lambda block: any(isinstance(value, str) and value.endswith(image.data) for value in block.values())


def unclear(block: Json) -> object:
    """Whether the arguments of a call are no JSON object."""
    written = block.get("arguments")
    if not isinstance(written, str):
        return False
    try:
        return not isinstance(json.loads(written), dict)
    except ValueError:
        return True


def turns(body: Json) -> Fail | None:
    """Mistral's order of roles, and ids of calls."""
    last = ""
    for message in body["messages"]:
        if (last, message["role"]) == ("tool", "user"):
            return Fail(400, message="Unexpected role 'user' after role 'tool'")
        last = message["role"]
    return forbids(
        lambda block: not re.fullmatch("[a-zA-Z0-9]{9}", str(block.get("tool_call_id", "abcdefghi"))),
        "Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.",
    )(body)


def counted(kind: str, most: int, words: str) -> Rule:
    return lambda body: (
        Fail(400, message=words) if sum(kind == one.get("type") for _, one in blocks(body)) > most else None
    )


def alternates(body: Json) -> Fail | None:
    roles = [one["role"] for one in body["messages"] if one["role"] in ("user", "assistant")]
    doubled = any(one == other == "user" for one, other in pairwise(roles))
    return Fail(500, message="Conversation roles must alternate user/assistant/user/assistant/...") if doubled else None


def seen(*images: Image) -> Sequence[Message]:
    """A tool has shown pictures, and a person has written after it."""
    shown = ToolResult("call_abcdefgh", "read", "seen", images=images)
    return user("go"), assistant(call("call_abcdefgh")), Message("tool", (shown,)), user("and?")


def thought(part: Part, *after: Message) -> Sequence[Message]:
    return user("go"), assistant(part, call("call_abcdefgh")), results(("call_abcdefgh", "A")), *after


def tool(name: str, properties: object) -> ToolSpec:
    return ToolSpec(name, "Does it.", json.dumps({"type": "object", "properties": properties}))


SIGNED = Thinking("hm", "by another key")
SEALED = Thinking("hm", "rs_1", "gAAAAbyanotherorganisation")
CALLED = (user("go"), assistant(call("call_abcdefgh"), model="other/model"), results(("call_abcdefgh", "A")), user("?"))
BROKEN = (user("go"), assistant(call("abcdefghi", arguments='{"path": "a')), results(("abcdefghi", "A")), user("?"))
SIGNATURE = "{at}: Invalid `signature` in `thinking` block"
SEALS = "The encrypted content gAAA...rg== could not be verified."
MANY = tuple(tool(f"do_{number}", {}) for number in range(129))
ODD = tool("odd", {"a[b]": {"type": "array"}})
STRANGE = tool("strange", {"a": {"const": 1}})
UNMARKED = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly."
)


@dataclass(frozen=True)
class Case:
    """A conversation that a rule refuses: how many requests it takes, and what is said to be left out."""

    api: ModelApi
    rule: Rule
    messages: Sequence[Message]
    requests: int
    left: str = ""
    tools: tuple[ToolSpec, ...] = (READ,)
    model: str = ""
    keeps: Sequence[Image] = ()
    thinking: ThinkingLevel = "auto"
    strict: bool = True


CASES = {
    "a tool's picture is too tall": Case(
        "anthropic",
        forbids(
            shows(TALL), "{at}.image.source.base64.data: At least one of the image dimensions exceed max allowed size"
        ),
        seen(GOOD, TALL),
        2,
        "image",
        keeps=(GOOD,),
    ),
    "a person's picture among others, which is named": Case(
        "openai-chat",
        forbids(shows(BLACK), "Invalid {at}: unsupported image"),
        (user("look", GOOD, BLACK, CUT),),
        2,
        "image",
        keeps=(GOOD, CUT),
    ),
    "a cut picture that is not named": Case(
        "anthropic",
        forbids(shows(CUT), "Could not process image"),
        seen(GOOD, CUT, BLACK),
        2,
        "image",
        keeps=(GOOD, BLACK),
    ),
    "a whole picture that is not named, and not the newest": Case(
        "openai-chat", forbids(shows(BLACK), "Invalid PNG image."), seen(BLACK, GOOD), 3, "image", keeps=(GOOD,)
    ),
    "a picture of Responses": Case(
        "openai-responses",
        forbids(shows(CUT), "The image data you provided does not represent a valid image. Please check '{at}'."),
        seen(GOOD, CUT),
        2,
        "image",
        keeps=(GOOD,),
    ),
    "a picture of another type than it says": Case(
        "anthropic",
        forbids(
            shows(Image("", GOOD.data)), "{at}.image.source.base64.data: Image does not match the provided media type"
        ),
        seen(Image("image/jpeg", GOOD.data), BLACK),
        2,
        "image",
        keeps=(BLACK,),
    ),
    "more pictures than a server takes": Case(
        "openai-chat",
        counted("image_url", 1, "At most 1 image(s) may be provided in one request."),
        seen(GOOD, BLACK),
        2,
        "images",
        keeps=(BLACK,),
    ),
    "pictures for a model that sees none": Case(
        "openai-chat",
        forbids(
            lambda block: block.get("type") == "image_url", "messages[3]: unknown variant `image_url`, expected `text`"
        ),
        seen(GOOD),
        2,
        "images",
    ),
    "thinking that another key has signed": Case(
        "anthropic",
        forbids(lambda block: block.get("type") == "thinking", SIGNATURE),
        (*thought(SIGNED, user("and?")), assistant(SIGNED, "So."), user("?")),
        2,
        "thinking",
    ),
    "the same in the calls that are continued, while it thinks": Case(
        "anthropic",
        forbids(lambda block: block.get("type") == "thinking" and "signature" in block, SIGNATURE),
        thought(SIGNED),
        2,
        "thinking",
        thinking="high",
    ),
    "encrypted reasoning of another organisation": Case(
        "openai-responses",
        forbids(lambda block: "encrypted_content" in block, SEALS),
        thought(SEALED, user("?")),
        2,
        "thinking",
    ),
    "reasoning that lost what follows": Case(
        "openai-responses",
        forbids(
            lambda block: block.get("id") == "rs_1", "Item 'rs_1' of type 'reasoning' was provided without its item."
        ),
        thought(SEALED, user("?")),
        2,
        "thinking",
    ),
    "arguments that are no JSON, vLLM": Case(
        "openai-chat", forbids(unclear, "Expecting ',' delimiter: line 1 column 54 (char 53)"), BROKEN, 1
    ),
    "arguments that are no JSON, llama.cpp": Case(
        "openai-chat", forbids(unclear, "Failed to parse tool call arguments as JSON", 500), BROKEN, 1
    ),
    "arguments that are no JSON, Responses": Case("openai-responses", forbids(unclear, "Invalid '{at}'"), BROKEN, 1),
    "a property's name": Case(
        "anthropic",
        forbids(lambda block: "a[b]" in block, "{at}: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"),
        (user("hi"),),
        3,
        "tool",
        tools=(READ, ODD),
    ),
    "a list that does not say of what": Case(
        "openai-chat",
        forbids(
            lambda block: block.get("type") == "array" and "items" not in block,
            "Invalid schema for function 'odd': In context=('properties', 'a[b]'), array schema missing items.",
        ),
        (user("hi"),),
        2,
        tools=(READ, ODD),
    ),
    "a keyword, by Gemini": Case(
        "openai-chat",
        forbids(
            lambda block: "const" in block,
            'Invalid JSON payload received. Unknown name "const" at \'tools[0].function_declarations[1].parameters'
            ".properties[0].value': Cannot find field.",
        ),
        (user("hi"),),
        2,
        tools=(READ, STRANGE),
    ),
    "a tool that is not named": Case(
        "openai-chat",
        forbids(lambda block: block.get("name") == "strange", "failed to parse grammar of the tools"),
        (user("hi"),),
        3,
        "tool",
        tools=(READ, STRANGE),
    ),
    "a 129th tool": Case(
        "openai-chat",
        lambda body: (
            Fail(
                400, message="Invalid 'tools': array too long. Expected an array with maximum length 100, but got 129."
            )
            if len(body["tools"]) > 100
            else None
        ),
        (user("hi"),),
        2,
        "tools",
        tools=MANY[:128],
    ),
    "a 129th tool, where it is known": Case("openai-responses", lambda body: None, (user("hi"),), 1, tools=MANY),
    "a model that takes no tools": Case(
        "openai-chat",
        lambda body: Fail(400, message="small:1b does not support tools") if "tools" in body else None,
        (user("hi"),),
        2,
        "tools",
    ),
    "Mistral's ids and roles": Case("openai-chat", turns, CALLED, 1, model="mistral-large-latest"),
    "ids and roles where nobody knew": Case("openai-chat", turns, CALLED, 3, model="house-blend"),
    "a picture behind a result, by Mistral": Case(
        "openai-chat", turns, seen(GOOD), 1, model="pixtral-12b", keeps=(GOOD,)
    ),
    "roles that alternate": Case("openai-chat", alternates, (user("a"), user("b"), assistant("c"), user("d")), 2),
    "calls of others, by Gemini": Case(
        "openai-chat",
        forbids(lambda block: "tool_calls" in block and "extra_content" not in block["tool_calls"][0], UNMARKED),
        CALLED,
        2,
        strict=False,
    ),
    "a call whose reasoning is wanted": Case(
        "openai-chat",
        forbids(
            lambda block: "tool_calls" in block and "reasoning_content" not in block,
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        ),
        CALLED,
        2,
        strict=False,
    ),
    "words that say nothing": Case(
        "openai-chat",
        forbids(shows(BLACK), "Param Incorrect"),
        (user("look", GOOD), assistant("A."), user(BLACK)),
        3,
        "image",
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_part_that_is_refused_is_left_out_and_never_sent_again(name: str) -> None:
    case, known = CASES[name], list[str]()

    async def keep(model: str, parts: Mapping[str, str]) -> None:
        known.extend(parts)

    async with SERVERS[case.api](keys=[KEY], strict=case.strict) as server:
        server.tolerate("prefix changed")
        server.tolerate("request 1 is malformed")
        server.default = lambda asked: case.rule(asked.body) or Say("There.")
        client = MaskedClient(client_of(case.api, server.url, case.model), Redactor(()))
        client.refused = Refused(client.name, keep)
        own = f"house/{case.model or MODELS[case.api]}"
        messages = [
            Message(one.role, one.parts, own if one.model == "house/some-model" else one.model) for one in case.messages
        ]
        asked = request(*messages, tools=case.tools, thinking=case.thinking)
        parts = await listen(client, asked)
        assert server.count == case.requests
        left = {part.split(" ")[0] for one in parts if isinstance(one, LeftOut) for part in one.parts} - {
            "form",
            "schema",
        }
        assert left == ({case.left} if case.left else set())
        await client.close()
        client = MaskedClient(client_of(case.api, server.url, case.model), Redactor(()))  # after a restart
        client.refused = Refused(client.name, keep)
        client.refused.parts = dict.fromkeys(known, "as before")
        answer = (await listen(client, asked))[-1]
        assert isinstance(answer, Answer)
        assert answer.message.text == "There."
        await client.close()
        assert server.count == case.requests + 1, "a part that is known is not paid again"
        for image in case.keeps:
            assert image.data in server.requests[-1].raw.decode()


async def test_what_nothing_helps_against_is_tried_three_times_and_once_from_then_on() -> None:
    async with SERVERS["openai-chat"](keys=[KEY]) as server:
        server.tolerate("prefix changed")
        server.default = lambda asked: Fail(400, message=f"Bad Request (request id: {asked.number})")
        client = MaskedClient(client_of("openai-chat", server.url), Redactor(()))
        client.refused = Refused(client.name, lambda model, parts: pytest.fail("nothing was learnt"))
        for count in (4, 5):
            with pytest.raises(ModelError, match="Bad Request"):
                await listen(client, request(*seen(GOOD, CUT, BLACK), tools=(READ, STRANGE)))
            assert server.count == count
        assert client.refused.parts == {}
        await client.close()
