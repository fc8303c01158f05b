"""`hark doctor`: what is right, what is missing and what is wrong, one line each with what to do.

Where no service runs, each token is tried at its platform, and each model is asked for one word with each of its keys.
Nothing is received, and nobody is told anything.
"""

import asyncio
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal

import httpx2
import structlog

from agent import models
from agent.errors import ModelError
from agent.message import Message, Text
from agent.models.base import ModelRequest, ModelSpec
from agent.sandbox.base import ONLY_LOOKS, Confinement
from agent.sandbox.proof import choose
from bot.cli.local import FAILED
from bot.cli.terminal.client import Client, Rejected, Unreachable
from bot.config.assumed import look_up
from bot.config.checks import service_conflicts, warnings
from bot.config.choose_model import beat_model, choose_model, probe_ollama
from bot.config.errors import ConfigError, dotted
from bot.config.extensions import broken, load
from bot.config.model import Config
from bot.config.secrets import secrets
from bot.gateway.unix_socket import SOCKET
from bot.gateway.views import ReadinessView
from bot.hooks.found import find
from bot.runs.guest_disk import over_limit
from bot.runs.rooms import of_one_person
from bot.skills.shelf import FOLDER, scan, why_unused
from bot.telemetry.redact import Redactor
from channels.settings import AccountSection, Proof

# Seconds that a platform or a model has to answer.
_PATIENCE = 30.0
_QUESTION = ModelRequest(
    system="Answer with one word.",
    messages=(Message("user", (Text("Say OK."),)),),
    tools=(),
    max_output=1024,
    for_owners=True,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the result."""

    state: Literal["ok", "note", "wrong"]
    # The part that was examined.
    about: str
    text: str


async def examine(as_json: bool, config: Config) -> int:
    """Examine everything and print the lines. Returns the exit code: 0 when nothing is wrong, else 1."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))  # the lines say it
    environ, sandbox = config.environ(os.environ), ""
    unused: dict[str, str] | None = None
    await asyncio.to_thread(look_up, config)
    try:
        async with aclosing(Client(config.state / SOCKET)) as client:
            readiness = await client.readiness()
            found = [*_configured(config, readiness.channels), *_running(readiness)]
            with suppress(Rejected):  # it is starting
                sandbox = (await client.status()).sandbox
                unused = {one.name: one.why_not for one in await client.skills() if one.why_not}
    except Unreachable:
        wrong = [f"{dotted(key)}: {text}" for key, text in service_conflicts(config, environ)]
        found = [Finding("wrong", "configuration", text) for text in wrong] or list(_configured(config))
        found.append(Finding("wrong", "service", f"is not running in {config.state}; `hark run` starts it"))
        found += await _try_all(config, environ)
    found.append(await _held(config, sandbox))
    together = of_one_person(config.sessions.identity_links)
    full = await asyncio.to_thread(over_limit, config.workspace, config.guests.disk, together)
    found += [Finding("note", "guests", _full(name, size, config.guests.disk)) for name, size in full.items()]
    if unused is None:
        unused = await asyncio.to_thread(_unused, config, environ)
    found += [Finding("note", "skills", f"{name} is not loaded: {why}") for name, why in unused.items() if why]
    found += await asyncio.to_thread(lambda: list(_hooked(config, environ)))
    clean = Redactor(secrets(config, environ)).clean
    found = [replace(one, text=clean(one.text)) for one in found]
    if as_json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=2))  # noqa: T201
    else:
        width = max(len(one.about) for one in found)
        print("\n".join(f"{one.state:<6}{one.about:<{width + 2}}{one.text}" for one in found))  # noqa: T201
    return FAILED if any(one.state == "wrong" for one in found) else 0


def _configured(config: Config, served: Iterable[str] = ()) -> Iterator[Finding]:
    """Yield lines about the configuration. served: the channels of the service that runs."""
    for mistake in config.source.mistakes:
        # what is not set here the service has been given
        yield Finding("note" if mistake.unset else "wrong", "configuration", str(mistake))
    if not config.source.mistakes:
        yield Finding("ok", "configuration", "no mistakes")
    troubles = broken(config.extensions)
    yield from (Finding("wrong", "extensions", text) for text in troubles)
    for name, brings in load(config.extensions).found.items():
        if brings:
            yield Finding("ok", "extensions", f"{name}: {', '.join(brings)}")
    for warning in warnings(config):
        if warning not in troubles:
            yield Finding("note", "configuration", warning)
    follow = config.web.fetch.follow
    few = f"{follow.per_host} a host and {follow.per_task} a task of the addresses that only pages name are followed"
    yield Finding("ok", "web", f"{few} without a question (web.fetch.follow)")
    sections = config.channels.sections()
    served = {name.partition(":")[0] for name in served}
    if not any(not one.local and (one.enabled or name in served) for name, one in sections.items()):
        reached = "the bot can be reached in the terminal and over HTTP"
        yield Finding("note", "platforms", f"none is enabled: {reached}; docs/channels says how to add one")


async def _held(config: Config, sandbox: str) -> Finding:
    """The line about the sandbox. sandbox: what the service says of it; when empty, one is looked for here."""
    if not sandbox:
        proved = await asyncio.to_thread(choose, config.tools.exec.sandbox)
        sandbox = Confinement(sandbox=proved.sandbox, why=proved.why).shown
    smaller = sandbox.startswith("none") or ONLY_LOOKS in sandbox
    return Finding("note" if smaller else "ok", "sandbox", sandbox)


def _full(name: str, size: int, limit: int) -> str:
    return (
        f"{name} holds {size // 10**6:,} MB, {limit // 10**6:,} MB are allowed: its oldest media go when a file is "
        "stored there next. Set guests.disk to keep them"
    )


def _unused(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the skills with what is in their way, as far as that can be told without the store. Blocks."""
    there = scan(config.workspace / FOLDER, {})
    return {name: why_unused(one, config.skills, environ) for name, one in there.items()}


def _hooked(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield lines about hooks, whose files are loaded for that but not called. Blocks."""
    found = find(config, environ, str)
    yield from (Finding("wrong", "hooks", mistake) for mistake in found.mistakes)
    if found.hooks and not found.mistakes:
        points = ", ".join(sorted({hook.point for hook in found.hooks}))
        yield Finding("ok", "hooks", f"{len(found.hooks)} at {points}")


def _running(readiness: ReadinessView) -> Iterator[Finding]:
    text = "running and ready" if readiness.ready else "running, and not ready: see below"
    yield Finding("ok" if readiness.ready else "wrong", "service", text)
    for name, channel in readiness.channels.items():
        ready = channel.state == "ready"
        for number, sentence in enumerate((channel.detail or channel.state).split("; ")):
            state: Literal["ok", "note", "wrong"] = ("note" if number else "ok") if ready else "wrong"
            yield Finding(state, name, sentence)


async def _try_all(config: Config, environ: Mapping[str, str]) -> list[Finding]:
    """Try each token, and each model with each key; returns a line for each."""
    async with httpx2.AsyncClient(timeout=_PATIENCE) as http:
        tokens = [_try_token(http, about, bot, proof) for about, bot in _accounts(config) for proof in bot.proofs()]
        found = await asyncio.gather(*tokens)
    specs = await asyncio.to_thread(lambda: list(_specs(config, environ)))
    return [*found, *await asyncio.gather(*(_try_model(*one) for one in specs))]


def _accounts(config: Config) -> Iterator[tuple[str, AccountSection]]:
    for name, section in config.channels.sections().items():
        for account, bot in section.bots().items() if section.enabled else ():
            if isinstance(bot, AccountSection) and bot.enabled:
                yield (f"{name}:{account}" if account else name), bot


async def _try_token(http: httpx2.AsyncClient, about: str, bot: AccountSection, proof: Proof) -> Finding:
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
    """Yield each model that is named or chosen, once with each of its keys, and what to call that. Blocks."""
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


async def _try_model(spec: ModelSpec, called: str) -> Finding:
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
    if client.context_window < spec.context_window:
        less = f"{client.context_window:,} tokens instead of {spec.context_window:,}"
        return Finding("note", "model", f"{called} answers, with a context of {less}; docs/models.md says why")
    return Finding("ok", "model", f"{called} answers")
