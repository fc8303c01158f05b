"""Clients from specifications: what is imported when, and what is not shown."""

import subprocess
import sys

import pytest

from agent.models import build
from agent.models.base import ModelApi
from tests.agent.models.makers import spec


@pytest.mark.parametrize("api", ["anthropic", "openai-chat", "openai-responses", "offline"])
async def test_a_client_has_what_the_specification_says(api: ModelApi) -> None:
    client = build(spec(api, context_window=1000, max_output=100, thinks=True, api_keys=("secret-key",)))
    assert (client.name, client.context_window, client.max_output) == ("house/some-model", 1000, 100)
    assert client.thinks
    await client.close()


def test_building_imports_no_sdk() -> None:
    code = (
        "import sys\n"
        "from agent.models import build\n"
        "from agent.models.base import ModelSpec\n"
        "for api in ('anthropic', 'openai-chat', 'openai-responses', 'offline'):\n"
        "    build(ModelSpec(provider='p', api=api, model='m'))\n"
        "print(sorted({'anthropic', 'openai', 'httpx2', 'pydantic'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_specification_does_not_show_its_keys() -> None:
    assert "secret-key" not in repr(spec("anthropic", api_keys=("secret-key",)))
