"""What the process imports and makes from which others are forked, and nobody else; see `forked.py`."""

import functools
import gc
import importlib
import ssl
import tempfile
from types import SimpleNamespace
from typing import Any, cast

from agent.sandbox.proof import choose
from agent.tools.base import Parameters
from agent.tools.schema import specs
from tests import forked
from tests.crash import child, forgetting

__all__ = ["child", "forgetting", "forked"]

for _module in (
    # what a service imports when it starts to listen and to beat
    *("bot.gateway.app", "bot.gateway.server", "uvicorn.protocols.http.auto", "uvicorn.protocols.http.h11_impl"),
    *(
        "apscheduler.schedulers.asyncio",
        "apscheduler.executors.asyncio",
        "apscheduler.triggers.date",
        "concurrent.futures.thread",
    ),
    # what the command line and the reading of its settings import when they are used
    *("encodings.utf_8_sig", "typer._adapters", "typer._click.decorators"),
):
    importlib.import_module(_module)

# The schemas of tools, which a service makes for its first turn and keeps.
_tools: list[Any] = [
    SimpleNamespace(name="", description="", parameters=parameters, schema="")
    for parameters in Parameters.__subclasses__()
]
specs(_tools)

# The sandbox, which each service proves when it starts; programs of tests that import everything prove their own.
choose("auto")
tempfile.tempdir = None  # each process finds its own

# No test uses TLS, so one context serves all, as in conftest.
ssl.create_default_context = cast(Any, functools.cache(ssl.create_default_context))

# What is there is never garbage: a collection in a fork that looked at it would copy its memory.
gc.collect()
gc.freeze()
