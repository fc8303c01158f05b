"""What differs between servers that speak OpenAI's protocols, as one table.

The first entry whose pattern is found in the root of the API counts. A level of thinking that a server refuses all the
same is answered by the runner, which takes the next lower one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from agent.models.base import ModelSpec, Takes, ThinkingLevel
from agent.models.protocol import EFFORTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Compat:
    """How one kind of server wants its requests."""

    # A pattern for the root of the API.
    url: str
    # The field of the limit of output.
    limit: str = "max_tokens"
    # The values of `reasoning_effort`; a level that is not in it sends none.
    efforts: Mapping[ThinkingLevel, str] = field(default_factory=lambda: EFFORTS)
    # Whether it is Ollama, which cuts requests unless it is told the size of the context beforehand.
    ollama: bool = False
    # Whether the reasoning before a call has to come back with it, and whether `thinking` turns reasoning off.
    reasoning: bool = False


TABLE = (
    # https://platform.openai.com/docs/api-reference/chat
    Compat(url=r"//api\.openai\.com", limit="max_completion_tokens"),
    # https://ai.google.dev/gemini-api/docs/openai: the highest effort is high, and none turns thinking off.
    Compat(url=r"generativelanguage\.googleapis\.com", efforts={**EFFORTS, "x-high": "high", "off": "none"}),
    # https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
    Compat(url=r"//openrouter\.ai", efforts={**EFFORTS, "off": "none"}),
    # https://console.groq.com/docs/reasoning
    Compat(url=r"api\.groq\.com", limit="max_completion_tokens", efforts={**EFFORTS, "x-high": "high"}),
    # https://api-docs.deepseek.com/guides/thinking_mode
    Compat(url=r"api\.deepseek\.com", efforts={**EFFORTS, "medium": "high", "x-high": "max"}, reasoning=True),
    # https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
    Compat(url=r"api\.moonshot\.", reasoning=True),
    # https://docs.ollama.com/api/openai-compatibility
    Compat(url=r":11434\b", efforts={**EFFORTS, "x-high": "high", "off": "none"}, ollama=True),
    Compat(url=r""),
)

# What providers take, by patterns for the protocol, the root of the API and the model; the first that is found counts.
TAKES = (
    # https://platform.claude.com/docs/en/build-with-claude/vision: with more than 20 images, 2,000 pixels.
    (r"^anthropic ", Takes(pixels=8000, image_bytes=3_750_000)),
    # https://docs.mistral.ai/capabilities/vision and mistral_common, which vLLM uses for the same models
    (
        r"api\.mistral\.ai|(mi[sx]tr|magistr|ministr|pixtr|code?str|devstr)al",
        Takes(images=8, forms=frozenset(("ids", "turns"))),
    ),
    # https://ai.google.dev/gemini-api/docs/thought-signatures and /function-calling
    (
        r"generativelanguage\.googleapis\.com.* gemini-([3-9]|\d\d)",
        Takes(tools=512, forms=frozenset(("signatures", "plain"))),
    ),
    (r"generativelanguage\.googleapis\.com", Takes(tools=512, forms=frozenset(("plain",)))),
    # https://console.groq.com/docs/vision
    (r"api\.groq\.com", Takes(tools=128, images=5, image_bytes=3_000_000)),
    # https://platform.openai.com/docs/api-reference/chat: tools
    (
        r"^openai-responses |^\S+ (https://api\.openai\.com|$| )|openai\.azure|deepseek\.com|moonshot\.",
        Takes(tools=128),
    ),
    (r"", Takes()),
)

# The root of OpenAI's own API, where a model has no other.
BASE_URL = "https://api.openai.com/v1"
# In the names of the variants of models that are made on a server of Ollama, before the size of the context.
VARIANT = "-hark"
# Models that refuse max_tokens on every server.
_NEW_LIMIT = re.compile(r"(^|/)(o\d|gpt-([5-9]|\d\d))")
# Models of OpenAI of which the effort none turns thinking off; those before them refuse it.
_TURNED_OFF = re.compile(r"(^|/)gpt-(5\.\d|[6-9]|\d\d)")


def limit_field(spec: ModelSpec) -> str:
    """Return the field in which a server takes the limit of output."""
    return "max_completion_tokens" if _NEW_LIMIT.search(spec.model) else _of(spec.base_url).limit


def effort(spec: ModelSpec, level: ThinkingLevel) -> str:
    """Return the effort that stands for a level of thinking; empty: none is sent."""
    if level == "off" and _TURNED_OFF.search(spec.model):
        return "none"
    return _of(spec.base_url).efforts.get(level, "")


def is_ollama(spec: ModelSpec) -> bool:
    """Whether a model is one of Ollama, by the name of its provider or its address, behind chat completions."""
    return spec.api == "openai-chat" and (spec.provider == "ollama" or _of(spec.base_url).ollama)


def wants_reasoning(spec: ModelSpec) -> bool:
    """Whether a server refuses a call without the reasoning before it, and takes `thinking` to turn that off."""
    return _of(spec.base_url).reasoning


@lru_cache(maxsize=64)
def takes(api: str, url: str, model: str) -> Takes:
    """Return what a provider takes."""
    return next(one for pattern, one in TAKES if re.search(pattern, f"{api} {url} {model}".lower()))


@lru_cache(maxsize=64)
def _of(url: str) -> Compat:
    return next(one for one in TABLE if re.search(one.url, url or BASE_URL))
