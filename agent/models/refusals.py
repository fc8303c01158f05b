"""Finds the part of a request that a provider refuses, and remembers it: no conversation is lost to a part of it.

A part is a text: its kind, and which one it is by its content, so that the same part is known wherever it stands again.

    image DIGEST     a picture              thinking DIGEST   reasoning that the provider cannot check
    images N         pictures but N         schema TOOL       the schema of a tool, which is sent in a plainer form
    tool TOOL        a tool                 form NAME         what is sent in another form, see `ModelRequest.forms`
    tools N          tools but N
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import structlog

from agent.errors import ErrorKind, ModelError
from agent.message import Image, Message, Thinking, ToolSpec
from agent.models import schemas
from agent.models.base import LeftOut, ModelRequest, Refused
from agent.models.protocol import images_of, with_images
from agent.pictures import is_whole

log = structlog.get_logger()


# Tries for one request, and those of them that follow no word of the refusal but halve what it may be about.
_TRIES, _GUESSES = 10, 3
_REASON = 200
# Failures that may be about a part only where the words say so; of INVALID_REQUEST they need not.
_PERHAPS = (ErrorKind.THINKING_UNSUPPORTED, ErrorKind.OVERLOADED, ErrorKind.UNKNOWN, ErrorKind.MODEL_NOT_FOUND)
LEFT_OUT = "[an image that this model refuses is left out]"

# Refusals of a form, of any server that has such rules.
_FORMS = (
    ("signatures", re.compile(r"missing.{0,20}thought_?signature|thought_?signature.{0,40}(missing|required)")),
    ("ids", re.compile(r"call.?id\b.{0,60}(must be|length|match|pattern|invalid|format|character)|with a length of 9")),
    ("turns", re.compile(r"roles? must alternate|must alternate|(unexpected|expected last) role|role.{0,40} after ")),
    (
        "reasoning",
        re.compile(r"(missing|must).{0,40}reasoning_content|reasoning_content.{0,60}(missing|must|required)"),
    ),
)
_NUMBER = r"(\d+)(?![\d.]|\s*(?:px|pixels?|[kmg]i?b\b|bytes|megapixels))"
_FEWER_IMAGES = re.compile(
    rf"(?:at most|maximum(?: of)?|limit(?: of| is)?|up to|more than|exceeds?)\D{{0,20}}{_NUMBER} ?images?"
    rf"|images?\b[^.\d]{{0,40}}(?:at most|max\w*|limit|exceeds?)\D{{0,20}}{_NUMBER}"
)
_NO_IMAGES = re.compile(
    r"(not|n't|no) .{0,20}(support|accept|allow|have).{0,30}(image (input|content|url)|images?\b|vision|multimodal)"
    r"|unknown variant .?image|images? (input )?(is|are) not (supported|allowed)|support image input"
    r"|image_url is only supported"
)
_FORMAT = re.compile(r"format|media.?type|mime|corrupt|decode|invalid image")
_FEWER_TOOLS = re.compile(
    rf"\btools?'?:?[^\[\d]{{0,80}}?(?:maximum length|at most|max\w{{0,10}}|limit|up to|exceeds?)\D{{0,30}}{_NUMBER}"
    rf"|(?:at most|max\w{{0,10}}|limit|up to|more than)\D{{0,20}}{_NUMBER} (?:tools|functions|function declarations)"
)
_NO_TOOLS = re.compile(
    r"not support (tools?\b|tool (use|calling|calls)|function)|tools? (use |calling )?(is|are) not supported"
    r"|support tool use"
)
_IMAGE = re.compile(r"image|picture|pixel|media.?type|multimodal|vision|\b(png|jpe?g|gif|webp)\b")
_THOUGHT = re.compile(
    r"signature|encrypted[_ ]content|redacted_thinking|`thinking` block|thinking block|reasoning item"
    r"|type 'reasoning'|'?rs_\w+"
)
_TOOL = re.compile(r"\btools?\b|function|schema|parameters|grammar|propert(y|ies)")
_REASONING = ("thinking", "redacted_thinking", "reasoning")


def without(request: ModelRequest, parts: Collection[str]) -> ModelRequest:
    """Return a request without some parts, or with them in a plainer form."""
    kinds = {part.partition(" ")[0] for part in parts}
    messages, tools = request.messages, request.tools
    forms = request.forms | {part.removeprefix("form ") for part in parts if part.startswith("form ")}
    if kinds & {"image", "images"}:
        images = images_of(messages)
        kept = [image_part(one) not in parts for one in images]
        if (most := _limit("images", parts)) is not None:
            for index in [index for index, keeps in enumerate(kept) if keeps][: max(sum(kept) - most, 0)]:
                kept[index] = False
        if not all(kept):
            messages = with_images(messages, [None if keeps else LEFT_OUT for keeps in kept])
    if "thinking" in kinds:
        changed = tuple(_thoughtless(one, parts) for one in messages)
        loop = next((at for at in range(len(messages), 0, -1) if _asks(messages, at - 1)), 0)
        if changed[loop:] != messages[loop:]:
            forms |= {"unthought"}
        messages = changed
    if kinds & {"tool", "schema", "tools"}:
        found = [one for one in tools if f"tool {tool_part(one)}" not in parts][: _limit("tools", parts)]
        tools = tuple(
            replace(one, schema_json=schemas.plain(one.schema_json)) if f"schema {tool_part(one)}" in parts else one
            for one in found
        )
    return replace(request, messages=messages, tools=tools, forms=forms)


def applied(request: ModelRequest, parts: Iterable[str]) -> Sequence[str]:
    """Return those of the parts that a request has."""
    whole = without(request, ())
    return [part for part in parts if not part.startswith("form ") and without(request, (part,)) != whole]


class Mending:
    """The tries to get one request through that was refused."""

    def __init__(self, request: ModelRequest, refused: Refused) -> None:
        """request: as it was sent."""
        self._request, self._refused = request, refused
        self._sure: dict[str, str] = {}
        self._guess: Sequence[str] = ()
        self._ladder: list[Sequence[str]] | None = None
        self._about = self._why = ""
        self._tries = self._guesses = 0

    @property
    def parts(self) -> dict[str, str]:
        """The parts that the present try is without, with the reasons."""
        return self._sure | dict.fromkeys(self._guess, self._why)

    def next(self, error: ModelError) -> ModelRequest | None:
        """Return the request to try next; None where nothing more can be done about a refusal. Reads whole pictures."""
        request, words = without(self._request, self.parts), error.detail.lower()
        self._tries += 1
        self._why = error.detail[:_REASON]
        if self._tries > _TRIES or (error.kind is not ErrorKind.INVALID_REQUEST and error.kind not in _PERHAPS):
            return None
        if found := [one for one in self._named(request, error.named, words) if one not in self.parts]:
            self._sure, self._guess, self._ladder = self.parts | dict.fromkeys(found, self._why), (), None
        elif error.kind is not ErrorKind.INVALID_REQUEST or not self._guessed(request, error.detail):
            return None
        return without(self._request, self.parts)

    async def worked(self) -> LeftOut:
        """Note that the present try is answered; returns what it is without."""
        if self.parts:
            log.warning("a model refuses parts of a request", parts=[*self.parts], said=self._why)
            await self._refused.learn(self.parts)
        return LeftOut(tuple(self.parts))

    def _named(self, request: ModelRequest, block: Any, words: str) -> Sequence[str]:
        """Return the parts that a refusal names: by its words, or by the block at the place in the body that it names.

        request: the one that was refused.
        """
        if forms := [f"form {name}" for name, pattern in _FORMS if pattern.search(words) and name not in request.forms]:
            return forms
        if limits := _limits(request, words):
            return limits
        if block.get("type") in _REASONING:
            return _thoughts(request.messages)
        if len(found := {image_part(one) for one in images_of(request.messages) if _holds(block, one.data)}) == 1:
            return [*found]
        for tool in self._request.tools:
            quoted = rf"['\"`“]{re.escape(tool.name.lower())}['\"`”]"
            if tool.name == _tool_name(block) or (_TOOL.search(words) and re.search(quoted, words)):
                schema = f"schema {tool_part(tool)}"
                return [f"tool {tool_part(tool)}" if schema in self.parts else schema]
        return _thoughts(request.messages) if _THOUGHT.search(words) else []

    def _guessed(self, request: ModelRequest, said: str) -> bool:
        """Guess what a refusal that names no part is about; False where nothing is left to be guessed."""
        same = re.sub(r"\d+|req_\w+", "", said)
        about, steps = _guesses(self._request, said.lower())
        if about != self._about or self._ladder is None:
            # another refusal than before: the last guess was right
            self._sure, self._guess, self._ladder, self._about = self.parts, (), steps, about
        while self._ladder and self._guesses < _GUESSES and same not in self._refused.helpless:
            self._guess = self._ladder.pop(0)
            if not self._guess or without(self._request, self.parts) != request:
                self._guesses += 1
                return True
        self._refused.helpless.add(same)
        return False


def _limits(request: ModelRequest, words: str) -> Sequence[str]:
    """Return the parts for a refusal of pictures or tools by their number, or of all."""
    images = len(images_of(request.messages))
    if images and _NO_IMAGES.search(words) and not _FORMAT.search(words):
        return ["images 0"]
    if request.tools and _NO_TOOLS.search(words):
        return ["tools 0"]
    for kind, pattern, has in (("images", _FEWER_IMAGES, images), ("tools", _FEWER_TOOLS, len(request.tools))):
        if (found := pattern.search(words)) and (most := int(found[1] or found[2])) < has:
            return [f"{kind} {most}"]
    return []


def _guesses(request: ModelRequest, words: str) -> tuple[str, list[Sequence[str]]]:
    """Return what a refusal is about by its words, and what to leave out, from little to much."""
    images, thoughts = images_of(request.messages), _thoughts(request.messages)
    pictures = [image_part(one) for one in images]
    broken = [image_part(one) for one in images if not is_whole(one)]
    *older, newest = pictures or [""]
    if images and _IMAGE.search(words):
        first = [broken] if broken else [[newest], older[len(older) // 2 :]]
        return "image", [step for step in (*first, pictures) if step]
    found = [one for one in request.tools if schemas.is_odd(one.schema_json)]
    tools = [tool_part(one) for one in found or request.tools]
    simple, left = [f"schema {one}" for one in tools], [f"tool {one}" for one in tools]
    if tools and _TOOL.search(words):
        return "tool", [simple, left[len(left) // 2 :], left]
    simple = simple if found else []
    turns = ["form ids", "form turns"] if any(one.tool_calls for one in request.messages) else []
    some = [*turns, *simple, *broken]
    more = [*some, *thoughts, *([newest] if images else [])]
    # Words that say nothing may be about nothing: at first the same is sent again.
    return "", [[], some or more, [*some, *thoughts, *pictures]] if more else []


def _thoughtless(message: Message, parts: Collection[str]) -> Message:
    kept = tuple(one for one in message.parts if not (isinstance(one, Thinking) and _thought(one) in parts))
    return message if len(kept) == len(message.parts) else replace(message, parts=kept)


def _thoughts(messages: Iterable[Message]) -> Sequence[str]:
    """Return all reasoning that may be sent back: where one cannot be checked, mostly none can, for the key is new."""
    return [_thought(one) for message in messages for one in message.parts if isinstance(one, Thinking)]


def _thought(one: Thinking) -> str:
    return f"thinking {_digest(one.signature + one.redacted + one.text)}"


def image_part(image: Image) -> str:
    """Return the part that an image is; the whole of it is not read."""
    data, middle = image.data, len(image.data) // 2
    return f"image {_digest(f'{len(data)} {data[:2000]} {data[middle : middle + 2000]} {data[-2000:]}')}"


@lru_cache(maxsize=500)
def tool_part(tool: ToolSpec) -> str:
    """Return the name of a tool, and a digest so that it is tried again when it has changed."""
    return f"{tool.name} {_digest(tool.description + tool.schema_json)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def _limit(kind: str, parts: Iterable[str]) -> int | None:
    return min((int(part.split(" ")[1]) for part in parts if part.startswith(f"{kind} ")), default=None)


def _asks(messages: Sequence[Message], at: int) -> bool:
    """Whether a message is what a person wrote, and no note behind results."""
    return messages[at].role == "user" and (not at or messages[at - 1].role != "tool")


def _holds(block: Any, data: str) -> bool:
    """Whether a block of a body holds the data of an image."""
    if isinstance(block, str):
        return bool(data) and block.endswith(data)
    values = block.values() if isinstance(block, dict) else block if isinstance(block, list) else ()
    return any(_holds(value, data) for value in values)


def _tool_name(block: Mapping[str, Any]) -> str:
    """Return the name of the tool that a block describes; empty for any other block."""
    tool = block.get("function", block)
    is_tool = isinstance(tool, dict) and tool.keys() & {"input_schema", "parameters"}
    return str(tool.get("name")) if is_tool else ""
