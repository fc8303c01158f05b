"""Which model answers: the one the configuration names, else the first that is there.

Order without a name: providers of the file as they are written, then ANTHROPIC_API_KEY, OPENAI_API_KEY, a
local Ollama, and at last the built-in offline model, which always is. Called once at start by `bot.wiring`.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.models.base import CommandLine, ModelApi, ModelSpec
from agent.models.compat import VARIANT
from bot.config.errors import ConfigError, KeyPath, Problem, dotted
from bot.config.model import Config
from bot.config.providers import ModelSettings, Provider, model_problem

# Takes the base URL of an Ollama server; gives the id of one of its models, None when none answers.
Probe = Callable[[str], str | None]

OLLAMA_URL = "http://127.0.0.1:11434/v1"


@dataclass(frozen=True, slots=True)
class _Known:
    """What is assumed of a provider, by its name or else by its protocol.

    The windows are what every current model of the provider has at least. Several take a million tokens; to
    use them all is a cost that `providers.<name>.models` has to choose.
    """

    api: ModelApi
    base_url: str
    default_model: str | None = None
    key_variable: str | None = None
    url_variable: str | None = None
    context_window: int = 128_000
    max_output: int | None = None
    vision: bool = False
    thinking: bool = False


_ANTHROPIC = _Known(
    api="anthropic",
    base_url="https://api.anthropic.com",
    default_model="claude-sonnet-5-5",
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    context_window=200_000,
    max_output=32_000,
    vision=True,
    thinking=True,
)
_OPENAI = _Known(
    api="openai-chat",
    base_url="https://api.openai.com/v1",
    default_model="gpt-6.1-terra",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    vision=True,
    thinking=True,
)
_BY_NAME = {
    "anthropic": _ANTHROPIC,
    "openai": _OPENAI,
    # What is asked of the server, which has memory for it; prompt and tools alone take up to 6,000.
    "ollama": _Known(api="openai-chat", base_url=OLLAMA_URL, context_window=16_384),
    "offline": _Known(api="offline", base_url="", default_model="offline", context_window=200_000),
}
_BY_API: Mapping[str, _Known] = {
    "anthropic": replace(_ANTHROPIC, default_model=None, key_variable=None, url_variable=None, thinking=False),
    "openai-chat": _Known(api="openai-chat", base_url=_OPENAI.base_url),
    "cli": _Known(api="cli", base_url="", default_model="default", context_window=200_000, thinking=True),
}


def choose_model(config: Config, environ: Mapping[str, str], probe: Probe) -> ModelSpec:
    """The model that answers. `probe` is called at most once, and only when nothing better was found.

    Raises ConfigError when the configuration names a model that cannot be asked because its key is missing.
    """
    if config.agent.model is not None:
        return _named(config, environ, config.agent.model, ("agent", "model"))
    for name in dict.fromkeys((*config.providers, "anthropic", "openai")):
        first = _first_model(config, name)
        if first is None:
            continue
        written = name in config.providers
        why = f"providers.{name} is configured" if written else f"{_known(config, name).key_variable} is set"
        chosen = _choose(config, environ, name, first, why)
        if chosen.api_keys or (written and _has_key(chosen) and _is_installed(chosen, environ)):
            return chosen
    ollama = _choose(config, environ, "ollama", "", "a local Ollama answers")
    found = probe(ollama.base_url)
    if found is not None:
        return _choose(config, environ, "ollama", found, ollama.why)
    return _choose(config, environ, "offline", "offline", "no other model is configured or found")


def beat_model(config: Config, environ: Mapping[str, str], agent: ModelSpec) -> ModelSpec | None:
    """The model of beats where it is not `agent`, the model that answers; else None.

    Raises ConfigError as `choose_model` does, and where a budget in money cannot be kept because no price is known.
    """
    beat = config.heartbeat
    chosen = _named(config, environ, beat.model or agent.name, ("heartbeat", "model"))
    if beat.daily_budget.unit == "USD" and chosen.price is None:
        where = f"providers.{chosen.provider}.models.{chosen.model}.price"
        text = f"money needs the price of `{chosen.name}`, which beats: write it at {where}, or give a number of tokens"
        raise ConfigError((Problem("configuration", None, ("heartbeat", "daily_budget"), text),))
    return None if replace(chosen, why=agent.why) == agent else chosen


def named_model(config: Config, environ: Mapping[str, str], name: str) -> ModelSpec:
    """The model of that name, `provider/model`. Raises LookupError with a sentence when it cannot be asked."""
    problem = model_problem(name, config.providers)
    if problem is not None:
        raise LookupError(problem)
    try:
        return _named(config, environ, name, ())
    except ConfigError as error:
        raise LookupError(error.problems[0].text) from None


def as_written(config: Config, name: str) -> ModelSpec:
    """The model of that name, `provider/model`, as far as the configuration says, whether it can be asked or not."""
    provider, _, model = name.partition("/")
    return _choose(config, {}, provider, model, "")


def fallback_models(config: Config, environ: Mapping[str, str]) -> Sequence[ModelSpec]:
    """The models of `agent.fallbacks`, in their order. Raises ConfigError where one cannot be asked."""
    return [
        _named(config, environ, one.model, ("agent", "fallbacks", at, "model"))
        for at, one in enumerate(config.agent.fallbacks)
    ]


def probe_ollama(base_url: str) -> str | None:
    """Ask the Ollama server at `base_url` for its models; None when none answers within half a second.

    Blocks for that long: call it before the event loop runs, or in a thread.
    """
    import httpx2  # only where nothing else is configured

    try:
        answer = httpx2.get(base_url.removesuffix("/v1") + "/api/tags", timeout=0.5, trust_env=False)
        names = [str(one["name"] or "") for one in answer.raise_for_status().json()["models"]]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, LookupError, TypeError):
        return None
    return next((name for name in names if name and VARIANT not in name), None)


def _known(config: Config, name: str) -> _Known:
    written = config.providers.get(name, Provider())
    if written.command and written.command[0].rpartition("/")[2] == "gemini":
        return replace(_BY_API["cli"], thinking=False)  # it has no option for it
    if name in _BY_NAME and written.api in (None, _BY_NAME[name].api):
        return _BY_NAME[name]
    assert written.api is not None, "`checks` refuses a provider without api"
    if written.api == "openai-responses":
        return replace(_BY_NAME["openai"] if name == "openai" else _BY_API["openai-chat"], api="openai-responses")
    return _BY_API.get(written.api) or _Known(api=written.api, base_url="")


def api_of(config: Config, name: str) -> ModelApi:
    """Return the protocol of a configured provider."""
    return _known(config, name).api


def _first_model(config: Config, name: str) -> str | None:
    listed = config.providers.get(name, Provider()).models
    return next(iter(listed), _known(config, name).default_model)


def _named(config: Config, environ: Mapping[str, str], written: str, key: KeyPath) -> ModelSpec:
    """The model of that name. key: where it is written. Raises ConfigError when it cannot be asked."""
    name, _, model = written.partition("/")
    chosen = _choose(config, environ, name, model or "offline", f"{dotted(key)} names it")
    if not _has_key(chosen):
        raise ConfigError((_no_key(written, name, key),))
    if chosen.command is not None and not _is_installed(chosen, environ):
        text = (
            f"`{chosen.command.program}` is not installed, or not on PATH; write its path at providers.{name}.command"
        )
        raise ConfigError((Problem("configuration", None, key, text),))
    return chosen


def _choose(config: Config, environ: Mapping[str, str], name: str, model: str, why: str) -> ModelSpec:
    known = _known(config, name)
    written = config.providers.get(name, Provider())
    settings = written.models.get(model, ModelSettings())
    key = environ.get(known.key_variable or "", "").strip()
    url = environ.get(known.url_variable or "", "").strip()
    keys = tuple(written_key.get_secret_value() for written_key in written.api_keys)
    window = settings.context_window or known.context_window
    command = _command(config, name, written)
    return ModelSpec(
        provider=name,
        api=known.api,
        base_url=written.base_url or url.rstrip("/") or known.base_url,
        api_keys=keys or ((key,) if key else ()),
        model=model,
        context_window=window,
        # a limit of our own where none is known, so that the answer has room in the window
        max_output=settings.max_output or known.max_output or min(8192, window // 4),
        vision=known.vision if settings.vision is None else settings.vision,
        thinks=known.thinking if settings.thinking is None else settings.thinking,
        command=command,
        price=settings.price,
        why=f"{why}; a program, which answers owners alone and calls no tool" if command else why,
        params=tuple(settings.params.items()),
    )


def _command(config: Config, name: str, written: Provider) -> CommandLine | None:
    """The program of a provider; None where it is asked otherwise."""
    if not written.command:
        return None
    return CommandLine(
        program=written.command[0],
        home=config.state / "cli" / name,
        temporary=config.state / "commands",
        sandbox=config.tools.exec.sandbox,
    )


def _is_installed(chosen: ModelSpec, environ: Mapping[str, str]) -> bool:
    """Whether the program of a model is there, if it is one."""
    return chosen.command is None or shutil.which(chosen.command.program, path=environ.get("PATH")) is not None


def environment_secrets(environ: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The keys that providers take from the environment, and their addresses there."""
    keys = [environ.get(known.key_variable or "", "") for known in _BY_NAME.values()]
    return keys, [environ.get(known.url_variable or "", "") for known in _BY_NAME.values()]


def _has_key(chosen: ModelSpec) -> bool:
    """A server of one's own may ask for no key; those of the two vendors always do."""
    return bool(chosen.api_keys) or chosen.base_url not in (_ANTHROPIC.base_url, _OPENAI.base_url)


def _no_key(model: str, provider: str, key: KeyPath) -> Problem:
    variable = _BY_NAME[provider].key_variable if provider in _BY_NAME else None
    written = f"write one at providers.{provider}.api_keys"
    ways = f"{written} or set {variable}" if variable else written
    return Problem("configuration", None, key, f"`{model}` needs a key: {ways}")
