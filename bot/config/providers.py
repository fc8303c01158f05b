"""The section `providers`: where models are asked, with which keys, and what single models can do."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, JsonValue, SecretStr

from agent import models
from agent.models.price import Price
from bot.config.values import nearest
from channels.section import Section, Url, Whole, refused, setting

BUILT_IN_PROVIDERS = ("anthropic", "openai", "ollama", "offline")


def _drop_empty(value: object) -> object:
    return [item for item in value if item != ""] if isinstance(value, list) else value


def _check_api(value: str) -> str:
    known = (*(one for one in models.BUILT_IN if one != "offline"), *models.FURTHER)
    if value not in known:
        raise refused(f"{', '.join(known)}{nearest(value, known)}")
    return value


class ModelSettings(Section):
    """What a model can do, where the built-in assumption is wrong."""

    context_window: Whole | None = setting(None, "Tokens of input and output together.", ge=1024)
    max_output: Whole | None = setting(None, "Most tokens of one answer.", ge=1)
    vision: bool | None = setting(None, "Whether it takes images.")
    thinking: bool | None = setting(None, "Whether it takes a thinking level.")
    price: Price | None = setting(None, "What it costs, in US dollars per million tokens.")
    params: dict[str, JsonValue] = setting({}, "Sent with each request, such as temperature.")


class Provider(Section):
    """Where models are asked."""

    api: Annotated[str, AfterValidator(_check_api)] | None = setting(
        None, "The protocol; known for anthropic, openai and ollama. cli: a program, for owners."
    )
    command: tuple[str, ...] | None = setting(
        None, "With api: cli the program, such as [claude]; it runs in the sandbox, without its tools."
    )
    base_url: Url | None = setting(None, "Root of the API, as the provider's own library takes it.")
    api_keys: Annotated[tuple[SecretStr, ...], BeforeValidator(_drop_empty)] = setting(
        (), "Keys; anthropic and openai take theirs from the environment when none is written."
    )
    models: dict[str, ModelSettings] = setting({}, "What single models can do, by their id.")


def provider_problem(name: str, provider: Provider) -> tuple[str, str] | None:
    """What is wrong with a provider, and at which of its keys; None when it can be asked."""
    if name == "offline" or "/" in name or not name:
        return "", "this name is taken or impossible; choose another one, without `/`"
    if provider.api is None and name not in BUILT_IN_PROVIDERS:
        return "api", "missing; allowed: anthropic, openai-chat, cli (only anthropic, openai and ollama need none)"
    if provider.api != "cli":
        return ("command", "only `api: cli` has a command; remove one of them") if provider.command else None
    return _program_problem(provider)


def _program_problem(provider: Provider) -> tuple[str, str] | None:
    from agent.models.cli.programs import PROGRAMS  # only where there is one

    programs = ", ".join(f"[{program}]" for program in PROGRAMS)
    if not provider.command:
        return "command", f"missing; allowed: {programs}, or its path"
    if len(provider.command) > 1:
        return "command", "more than the program; its options are Hark's, because they keep its tools off: remove them"
    if PurePath(provider.command[0]).name not in PROGRAMS:
        return "command", f"this program is not known, so its tools could be on; allowed: {programs}, or its path"
    for key in ("base_url", "api_keys"):
        if getattr(provider, key):
            return key, "a program has its own address and login; remove it"
    return None


def model_problem(written: str | None, providers: Iterable[str]) -> str | None:
    """What is wrong with a name for `agent.model`, None when its provider is known."""
    name, _, model = (written or "offline").partition("/")
    known = sorted({*providers, *BUILT_IN_PROVIDERS})
    if name not in known:
        more = nearest(name, known, 0.8) or f"; a section `providers.{name}` makes it known, see docs/models.md"
        return f"`{name}` is no provider; allowed: {', '.join(known)}{more}"
    return None if model or name == "offline" else f"`{name}` names no model; allowed: provider/model, or offline"
