"""Tries what a configuration holds, for `hark doctor`: each token at its platform, each key and model at its provider.

A model is asked for one word with each key. Nothing is received, and nobody is told anything.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

import httpx2

from agent import models
from agent.errors import ModelError
from agent.message import Message, Text
from agent.models.base import ModelRequest
from agent.models.spec import ModelSpec
from bot.config.choose_model import beat_model, choose_model, probe_ollama
from bot.config.errors import ConfigError
from bot.config.model import Config
from channels.settings import AccountSection, Proof

_PATIENCE = 30.0
_QUESTION = ModelRequest(
    system="Answer with one word.", messages=(Message("user", (Text("Say OK."),)),), tools=(), max_output=1024
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. about: the part that was looked at."""

    state: Literal["ok", "note", "wrong"]
    about: str
    text: str


async def tried(config: Config, environ: Mapping[str, str]) -> list[Finding]:
    """A line for each token, and for each model with each key."""
    async with httpx2.AsyncClient(timeout=_PATIENCE) as http:
        tokens = [_token(http, about, bot, proof) for about, bot in _accounts(config) for proof in bot.proofs()]
        found = await asyncio.gather(*tokens)
    specs = await asyncio.to_thread(lambda: list(_specs(config, environ)))
    return [*found, *await asyncio.gather(*(_model(*one) for one in specs))]


def _accounts(config: Config) -> Iterator[tuple[str, AccountSection]]:
    for name, section in config.channels.sections().items():
        for account, bot in section.bots().items() if section.enabled else ():
            if isinstance(bot, AccountSection) and bot.enabled:
                yield (f"{name}:{account}" if account else name), bot


async def _token(http: httpx2.AsyncClient, about: str, bot: AccountSection, proof: Proof) -> Finding:
    try:
        answer = await http.request(proof.method, proof.url, headers=proof.headers)
        body = answer.json()
    except (httpx2.HTTPError, ValueError) as error:  # whose text may hold the URL, and so the token
        return Finding("wrong", about, f"{proof.key} could not be tried: {type(error).__name__}; is there a network?")
    body = body if isinstance(body, dict) else {}
    if answer.is_success and body.get("ok", True):
        return Finding("ok", about, f"{proof.key} is accepted")
    reason = next((body[name] for name in ("description", "message", "error") if body.get(name)), answer.status_code)
    return Finding("wrong", about, f"{proof.key} was refused ({reason}); needed is {bot.secrets[proof.key][1]}")


def _specs(config: Config, environ: Mapping[str, str]) -> Iterator[tuple[ModelSpec, str]]:
    """Each model that is named or chosen, with one of its keys, and what to call that. Blocking."""
    names = [f"{provider}/{model}" for provider, written in config.providers.items() for model in written.models]
    try:
        chosen = choose_model(config, environ, probe_ollama)
        names = [chosen.name, (beat_model(config, environ, chosen) or chosen).name, *names]
    except ConfigError:
        pass  # said as a mistake of the configuration
    for name in dict.fromkeys(names):
        agent = config.agent.model_copy(update={"model": name})
        try:
            spec = choose_model(config.model_copy(update={"agent": agent}), environ, probe_ollama)
        except ConfigError:
            continue
        keys = spec.api_keys or ("",)
        for number, key in enumerate(keys, 1):
            called = f"{name} with key {number} of {len(keys)}" if len(keys) > 1 else name
            yield replace(spec, api_keys=(key,) if key else ()), called


async def _model(spec: ModelSpec, called: str) -> Finding:
    client = models.build(spec)
    try:
        await client.preload()
        async with asyncio.timeout(_PATIENCE), aclosing(client.stream(_QUESTION)) as parts:
            async for _ in parts:
                pass
    except (ModelError, TimeoutError) as error:
        return Finding("wrong", "model", f"{called} does not answer: {error or f'nothing came in {_PATIENCE:g} s'}")
    finally:
        await client.close()
    return Finding("ok", "model", f"{called} answers")
