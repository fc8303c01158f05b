"""Prices of models that the configuration names no price of, from the package genai-prices.

The package takes 20 MiB and a second to load, so it is asked in a process of its own. It brings its data along.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from agent.models.base import ModelSpec
from agent.models.price import Price
from bot.telemetry.redact import few

# Providers by the names that people give them, as the package names them.
_PROVIDERS = {
    **{name: name for name in ("anthropic", "openai", "google", "groq", "mistral", "deepseek", "openrouter")},
    "gemini": "google",
    "router": "openrouter",
    "xai": "x-ai",
    "x-ai": "x-ai",
}
# Seconds for one look.
_TIMEOUT = 30.0
# What `look_up` has found, by the names of models; None: no price is known.
found: dict[str, Price | None] = {}


def is_missing(spec: ModelSpec) -> bool:
    """Whether a model has no price in the configuration, and none is to be found."""
    return not (spec.price or _is_new(spec) or found.get(spec.name))


def look_up(specs: Sequence[ModelSpec]) -> None:
    """Find the prices of the models that have none in the configuration. Blocks for a second if there are any."""
    wanted = {one.name: (_PROVIDERS[one.provider], one.model) for one in specs if not one.price and _is_new(one)}
    if not wanted:
        return
    command = [sys.executable, "-P", "-c", _PROGRAM, json.dumps(wanted)]
    try:
        answer = subprocess.run(
            command, env=few(os.environ), capture_output=True, timeout=_TIMEOUT, check=True, text=True
        ).stdout
        found.update({name: Price(**price) if price else None for name, price in json.loads(answer).items()})
    except (OSError, ValueError, RecursionError, subprocess.SubprocessError):
        found.update(dict.fromkeys(wanted))


def _is_new(spec: ModelSpec) -> bool:
    return spec.provider in _PROVIDERS and spec.name not in found


_PROGRAM = """
import json, sys
from genai_prices import Usage, calc_price

def plain(price):
    return None if price is None else float(getattr(price, "base", price))

def price(provider, model):
    try:
        found = calc_price(Usage(input_tokens=1), model_ref=model, provider_id=provider).model_price
    except LookupError:
        return None
    one = {"input": plain(found.input_mtok), "output": plain(found.output_mtok)}
    cache = {"cache_read": plain(found.cache_read_mtok), "cache_write": plain(found.cache_write_mtok)}
    return None if None in one.values() else one | cache

print(json.dumps({name: price(*of) for name, of in json.loads(sys.argv[1]).items()}))
"""
