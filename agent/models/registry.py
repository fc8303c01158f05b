"""Makes model clients from their specification; the SDK of an api is imported when its client is first warmed."""

from types import ModuleType

from agent.models.base import ModelClient
from agent.models.connection import Connection
from agent.models.spec import Api, ModelSpec


class Connections:
    """One HTTP client per api, address and key, shared by all models that are built with it."""

    def __init__(self) -> None:
        self._known: dict[tuple[Api, str, str], Connection] = {}

    def get(self, spec: ModelSpec, api_key: str) -> Connection:
        """The connection for a model and key, with one more user."""
        api = _module(spec.api)
        base_url = spec.base_url or api.BASE_URL
        key = (spec.api, base_url, api_key)
        if key not in self._known or self._known[key].closed:
            self._known[key] = Connection(lambda: api.open_sdk(base_url, api_key), api_key)
        return self._known[key].share()


def build(spec: ModelSpec, connections: Connections | None = None) -> ModelClient:
    """A client for the model, with its first key. Nothing heavy is imported and no connection is opened yet."""
    if spec.api == "offline":
        from agent.models.offline import OfflineClient

        return OfflineClient(spec)
    connection = (connections or Connections()).get(spec, spec.api_keys[0] if spec.api_keys else "")
    client: ModelClient = _module(spec.api).Client(spec, connection)
    return client


def _module(api: Api) -> ModuleType:
    """What speaks it: a module with `open_sdk`, `BASE_URL` and `Client`."""
    from agent.models import anthropic, openai_chat

    return anthropic if api == "anthropic" else openai_chat
