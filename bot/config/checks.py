"""Rules between keys: each looks at a configuration whose values are right one by one.

A rule yields the path to point at, the sentence, and the other paths it read; `load` leaves it out when one
of those was already reported, so that one slip of the pen is one line.
"""

import difflib
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.config.errors import ConfigError, KeyPath
from bot.config.model import Config

BUILT_IN_PROVIDERS = ("anthropic", "openai", "ollama", "offline")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two keys that do not go together; `read` are the paths that were compared besides `path`."""

    path: KeyPath
    text: str
    read: tuple[KeyPath, ...] = ()


def conflicts(config: Config, file: Path | None) -> Iterator[Conflict]:
    """Yield every broken rule of `config`; its folders are absolute, `file` is where it was read from."""
    yield from _providers(config)
    yield from _telegram(config)
    yield from _identity_links(config)
    yield from _tools(config)
    yield from _gateway(config)
    yield from _folders(config, file)


def service_conflicts(config: Config, environ: Mapping[str, str]) -> Iterator[Conflict]:
    """Yield what keeps a service with a port from starting: what `hark run` refuses and `hark config check` shows."""
    if config.tools.exec.security == "full" and config.gateway.token is None:
        text = "`full` needs gateway.token: without it every user of this machine could call the port"
        yield Conflict(("tools", "exec", "security"), text, (("gateway", "token"),))
    from bot.config.choose_model import choose_model  # with an HTTP client, which other commands do not need

    try:
        choose_model(config, environ, lambda _: None)
    except ConfigError as error:
        for problem in error.problems:
            yield Conflict(problem.key, problem.text, (("providers",),))


def warnings(config: Config) -> Iterator[str]:
    """Yield what is allowed and can hardly be meant, one sentence each."""
    telegram = config.channels.telegram
    known = telegram.dm.allow_from or any(owner.startswith("telegram:") for owner in config.owners)
    if telegram.enabled and telegram.dm.policy == "allowlist" and not known:
        yield (
            "channels.telegram.dm.allow_from is empty and no owner is on Telegram, so the bot answers nobody there: "
            "write the ids of people there; the log names the id of whoever writes to the bot"
        )


def is_loopback(host: str) -> bool:
    """Whether a listener on `host` can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _providers(config: Config) -> Iterator[Conflict]:
    for name, provider in config.providers.items():
        if name == "offline" or "/" in name or not name:
            yield Conflict(("providers", name), "this name is taken or impossible; choose another one, without `/`")
        elif provider.api is None and name not in BUILT_IN_PROVIDERS:
            text = f"missing; allowed: anthropic, openai-chat (only {_spoken(BUILT_IN_PROVIDERS[:3])} need none)"
            yield Conflict(("providers", name, "api"), text)
    problem = model_problem(config)
    if problem is not None:
        yield Conflict(("agent", "model"), problem, (("providers", (config.agent.model or "").partition("/")[0]),))


def model_problem(config: Config) -> str | None:
    """What is wrong with `agent.model`, None when its provider is known."""
    name, _, model = (config.agent.model or "offline").partition("/")
    known = sorted({*config.providers, *BUILT_IN_PROVIDERS})
    if name not in known:
        nearest = difflib.get_close_matches(name, known, 1)
        hint = f"; nearest is `{nearest[0]}`" if nearest else ""
        return f"`{name}` is no provider; allowed: {', '.join(known)}{hint}"
    return None if model or name == "offline" else f"`{name}` names no model; allowed: provider/model, or offline"


def _telegram(config: Config) -> Iterator[Conflict]:
    here: KeyPath = ("channels", "telegram")
    telegram = config.channels.telegram
    if telegram.enabled and telegram.token is None:
        text = "missing; Telegram is enabled and needs the token from @BotFather"
        yield Conflict((*here, "token"), text, ((*here, "enabled"),))
    if telegram.token is not None and any(letter in "/?# \t\n" for letter in telegram.token.get_secret_value()):
        yield Conflict((*here, "token"), "found a hidden value; allowed: a token as @BotFather writes it")
    if telegram.streaming.min_chars > telegram.streaming.max_chars:
        text = f"{telegram.streaming.min_chars} is more than max_chars, {telegram.streaming.max_chars}"
        yield Conflict((*here, "streaming", "min_chars"), text, ((*here, "streaming", "max_chars"),))


def _identity_links(config: Config) -> Iterator[Conflict]:
    owner: dict[str, str] = {}
    for person, ids in config.sessions.identity_links.items():
        for number, one in enumerate(ids):
            if owner.setdefault(one, person) != person:
                text = f"`{one}` already belongs to `{owner[one]}`"
                yield Conflict(("sessions", "identity_links", person, number), text)


def _tools(config: Config) -> Iterator[Conflict]:
    written = {"allow": config.tools.allow or (), "deny": config.tools.deny}
    if not any(written.values()):
        return
    from agent.tools.registry import NAMES, matches

    for key, patterns in written.items():
        for number, pattern in enumerate(patterns):
            if not any(matches(name, (pattern,)) for name in NAMES):
                nearest = difflib.get_close_matches(pattern.lower(), NAMES, 1)
                hint = f"; nearest is `{nearest[0]}`" if nearest else ""
                text = f"`{pattern}` is no tool; allowed: {', '.join(sorted(NAMES))}, and * for anything{hint}"
                yield Conflict(("tools", key, number), text)


def _gateway(config: Config) -> Iterator[Conflict]:
    if config.gateway.token is None and not is_loopback(config.gateway.host):
        text = f"`{config.gateway.host}` can be reached from other machines; set gateway.token, or use 127.0.0.1"
        yield Conflict(("gateway", "host"), text, (("gateway", "token"),))


def _folders(config: Config, file: Path | None) -> Iterator[Conflict]:
    # The agent writes in the workspace; what the service trusts must not lie within its reach.
    if config.state.is_relative_to(config.workspace) or config.workspace.is_relative_to(config.state):
        text = "must be apart from workspace, neither inside the other: it is for the service alone"
        yield Conflict(("state",), text, (("workspace",),))
    if file is not None and file.is_relative_to(config.workspace):
        text = "holds this configuration file, which the agent could then change; choose a folder of its own"
        yield Conflict(("workspace",), text)


def _spoken(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
