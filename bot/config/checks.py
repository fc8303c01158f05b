"""Rules that no section can know by itself: they need the environment, or the whole service.

Rules between keys are validators of their sections; those of folders stand in `folders`.
"""

import shlex
from collections.abc import Iterator, Mapping

from bot.config.assumed import assumed
from bot.config.choose_model import api_of, beat_model, choose_model
from bot.config.document import VARIABLES
from bot.config.errors import ConfigError, KeyPath
from bot.config.extensions import broken
from bot.config.model import Config
from bot.config.params import refused
from bot.config.prices import unpriced
from channels.settings import AccountSection


def service_conflicts(config: Config, environ: Mapping[str, str]) -> Iterator[tuple[KeyPath, str]]:
    """Yield what keeps a service with a port from starting: what `hark run` refuses and `hark config check` shows."""
    if config.tools.exec.security == "full" and config.gateway.token is None:
        text = "`full` needs gateway.token: without it every user of this machine could call the port"
        yield ("tools", "exec", "security"), text
    for name, provider in config.providers.items():
        api, url = api_of(config, name), provider.base_url or ""
        for model, settings in provider.models.items():
            for param, text in refused(api, url, settings.params):
                yield ("providers", name, "models", model, "params", param), text
    try:
        chosen = choose_model(config, environ, lambda _: None)
        beating = beat_model(config, environ, chosen)
        yield from unpriced(config, chosen)
        if beating is not None and beating.name != chosen.name:
            yield from unpriced(config, beating)
    except ConfigError as error:
        yield from ((problem.key, problem.text) for problem in error.problems)


def warnings(config: Config) -> Iterator[str]:
    """Yield what is allowed and can hardly be meant, and what is assumed of models, one sentence each."""
    yield from assumed(config)
    yield from broken(config.extensions)
    sections = config.channels.sections()
    if config.sessions.identity_links and config.sessions.dm_scope != "per-peer":
        scope = config.sessions.dm_scope
        yield f"sessions.identity_links does nothing with sessions.dm_scope: {scope}; set that to per-peer"
    for file in config.source.files:
        if file.name == VARIABLES and file.exists() and file.stat().st_mode & 0o077:
            yield f"others on this machine may read {file}, which holds secrets: chmod 600 {shlex.quote(str(file))}"
    reached = config.heartbeat.target.partition(":")[0]
    if reached in sections and not sections[reached].enabled:
        yield f"heartbeat.target is on {reached.capitalize()}, which is not enabled, so no alert is shown to anybody"
    for name, section in sections.items():
        known = any(owner.startswith(f"{name}:") for owner in config.owners)
        for account, bot in section.bots().items() if section.enabled else ():
            if known or not isinstance(bot, AccountSection) or not bot.enabled:
                continue
            if bot.dm.policy != "allowlist" or bot.dm.allow_from:
                continue
            place = f"channels.{name}.accounts.{account}" if account else f"channels.{name}"
            yield (
                f"{place}.dm.allow_from is empty and no owner is on {name.capitalize()}, so the bot answers nobody "
                "there: write the ids of people there; the log names the id of whoever writes to the bot"
            )
