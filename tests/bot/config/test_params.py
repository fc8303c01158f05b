"""Which `params` of models are refused, and in which words."""

from typing import Any

import pytest

from agent.models.base import ModelApi
from bot.config.checks import service_conflicts
from bot.config.choose_model import choose_model
from bot.config.model import Config
from bot.config.params import fields, refused


@pytest.mark.parametrize(
    ("api", "base_url", "params", "said"),
    [
        ("anthropic", "", {"temperature": 0.5, "top_p": 0.9}, []),
        ("anthropic", "", {"temprature": 1}, ["no such field; nearest is `temperature`"]),
        ("anthropic", "https://api.anthropic.com", {"frequency_penalty": 1}, ["no such field; allowed: "]),
        ("openai-chat", "", {"frequency_penalty": 1, "seed": 3}, []),
        ("openai-chat", "", {"top_k": 3}, ["no such field"]),
        ("openai-chat", "http://127.0.0.1:8000/v1", {"top_k": 3}, []),
        ("openai-chat", "http://127.0.0.1:8000/v1", {"max_tokens": 3}, ["write `max_output`"]),
        ("openai-responses", "", {"truncation": "auto"}, []),
        ("openai-responses", "", {"store": True}, ["Hark sets this field itself"]),
        ("openai-responses", "", {"seed": 3}, ["no such field"]),
    ],
)
def test_what_is_refused(api: ModelApi, base_url: str, params: dict[str, object], said: list[str]) -> None:
    found = [text for _, text in refused(api, base_url, params)]
    assert len(found) == len(said)
    assert all(words in text for words, text in zip(said, found, strict=True))


def test_the_fields_of_each_sdk_are_found() -> None:
    apis: tuple[ModelApi, ...] = ("anthropic", "openai-chat", "openai-responses")
    assert all("temperature" in fields(api) and len(fields(api)) > 8 for api in apis)


def test_it_is_said_where_they_stand() -> None:
    written: dict[str, Any] = {"providers": {"openai": {"models": {"gpt-6.1-terra": {"params": {"top_k": 1}}}}}}
    ((key, text),) = service_conflicts(Config.model_validate(written), {"OPENAI_API_KEY": "k"})
    assert key == ("providers", "openai", "models", "gpt-6.1-terra", "params", "top_k")
    assert "no such field" in text


def test_openai_by_its_other_api_takes_its_key_from_the_environment() -> None:
    written: dict[str, Any] = {
        "agent": {"model": "openai/gpt-6.1-terra"},
        "providers": {"openai": {"api": "openai-responses"}},
    }
    spec = choose_model(Config.model_validate(written), {"OPENAI_API_KEY": "k"}, lambda _: None)
    assert (spec.api, spec.api_keys, spec.base_url) == ("openai-responses", ("k",), "https://api.openai.com/v1")
