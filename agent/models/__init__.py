"""Models: one client for each protocol of the providers, made from its specification.

The SDK of a protocol is imported when the client is first preloaded.
"""

from collections.abc import Callable

from agent.models.base import ModelClient, ModelSpec

# The protocols that a provider may speak, and the clients of those that extensions bring.
BUILT_IN = ("anthropic", "openai-chat", "openai-responses", "cli", "offline")
FURTHER: dict[str, Callable[[ModelSpec], ModelClient]] = {}


def build(spec: ModelSpec) -> ModelClient:
    """A client for the model, with its first key. Nothing heavy is imported and no connection is opened yet."""
    if spec.api == "offline":
        from agent.models.offline import OfflineClient

        return OfflineClient(spec)
    if spec.api in FURTHER:
        return FURTHER[spec.api](spec)
    if spec.api == "cli":
        from agent.models.cli.client import CliClient

        return CliClient(spec)
    from agent.models import anthropic, compat, ollama, openai_chat, openai_responses

    if compat.is_ollama(spec):
        return ollama.Client(spec)
    made = {"anthropic": anthropic.Client, "openai-chat": openai_chat.Client}
    return made.get(spec.api, openai_responses.Client)(spec)
