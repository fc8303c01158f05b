"""Checks `params` of models: what is sent as it is must be a field of the API, and none that Hark sets itself."""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from agent.models.base import ModelApi
from bot.config.values import nearest

# Where the SDK of each API describes its fields: a package, a file in it, and a class.
_DESCRIBED: Mapping[ModelApi, tuple[str, str, str]] = {
    "anthropic": ("anthropic", "types/message_create_params.py", "MessageCreateParamsBase"),
    "openai-chat": ("openai", "types/chat/completion_create_params.py", "CompletionCreateParamsBase"),
    "openai-responses": ("openai", "types/responses/response_create_params.py", "ResponseCreateParamsBase"),
}
# What the API takes for earlier models, and its SDK no longer describes.
_EARLIER: Mapping[ModelApi, tuple[str, ...]] = {"anthropic": ("temperature", "top_k", "top_p")}
# Other servers that speak these protocols may know more fields.
_OWN_HOSTS = ("//api.openai.com", "//api.anthropic.com")
_SET = ("model", "messages", "input", "system", "instructions", "tools", "tool_choice", "stream", "store", "include")
# Limits of output have a key of their own.
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def refused(api: ModelApi, base_url: str, params: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each of the params of a model that cannot be sent, and what is wrong with it.

    base_url: the root of the API; empty for the provider's own.
    """
    own = not base_url or any(host in base_url for host in _OWN_HOSTS)
    for name in params:
        if name in _LIMITS:
            yield name, "this is the limit of output; write `max_output` beside `params` instead"
        elif name in _SET:
            yield name, "Hark sets this field itself; remove it"
        elif own and (known := fields(api)) and name not in known:
            others = nearest(name, known, 0.7) or f"; allowed: {', '.join(sorted(known))}"
            yield name, f"{api} has no such field{others}"


@lru_cache(maxsize=8)
def fields(api: ModelApi) -> frozenset[str]:
    """Return the fields of requests, read from the installed SDK without importing it, which takes seconds.

    Empty if the SDK describes them elsewhere.
    """
    package, file, name = _DESCRIBED.get(api, ("", "", ""))
    found = find_spec(package) if package else None
    if found is None or found.origin is None:
        return frozenset()
    path = Path(found.origin).parent / file
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    described = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    lines = [line for node in described for line in node.body if isinstance(line, ast.AnnAssign)]
    names = {line.target.id for line in lines if isinstance(line.target, ast.Name)}
    return frozenset(names and {*names, *_EARLIER.get(api, ())}) - {*_SET, *_LIMITS}
