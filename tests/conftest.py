"""What holds for every test: a clean environment, loopback only, stand-ins without complaint, the same properties."""

import asyncio
import atexit
import functools
import gc
import ipaddress
import logging
import os
import shutil
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpcore2
import pytest
import structlog
import watchfiles
from hypothesis import HealthCheck, settings

from tests import stalls
from tests.standins.inspection import inspected

pytest_plugins = ["tests.counts.plugin"]

# Derandomised: the same examples on every machine and in every worker, so a failure is the change's own.
# `make soak` looks further with HYPOTHESIS_PROFILE=soak and prints how to repeat what it finds.
_COMMON = {
    "database": None,
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("suite", derandomize=True, max_examples=60, **_COMMON)
settings.register_profile("soak", max_examples=5_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# Files of tests are in memory where the system has such a place: what is synced there and cleaned up costs nothing.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 1_000_000_000:
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)

# What is imported and collected stays to the end: no collection of garbage looks at it again and again.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What has to stay on one worker begins first, so that all workers end together."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


def pytest_collection_finish() -> None:
    """Begin to collect garbage: that of the tests alone."""
    gc.collect()
    gc.freeze()
    gc.enable()


_FOREIGN_PREFIXES = ("ANTHROPIC_", "OPENAI_", "OLLAMA_", "HARK_", "SLACK_", "TELEGRAM_")
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}


# For this process and all it starts: `hark run` notes there where it was started.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="hark-test-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, address or proxy of the person who runs the tests reaches what is tested."""
    for name in list(os.environ):
        if name.startswith(_FOREIGN_PREFIXES) or name.lower() in _PROXIES:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def _loggers_are_made_anew() -> Iterator[None]:
    """A logger that a test has used is not kept as it was configured then; tracebacks are plain, which are cheap."""
    configure = structlog.configure
    *before, _ = structlog.get_config()["processors"]
    configure([*before, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", lambda **given: configure(**given | {"cache_logger_on_first_use": False}))
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once() -> Iterator[None]:
    """Each client of HTTP reads all certificates of the world for itself, and none is needed on loopback."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((ssl, "create_default_context"), (httpcore2, "default_ssl_context")):
            patch.setattr(module, name, functools.cache(getattr(module, name)))
        yield


async def _never_changes(*paths: object, **options: object) -> AsyncIterator[set[object]]:
    """In place of `watchfiles.awatch`."""
    await asyncio.Event().wait()
    yield set()


@pytest.fixture(scope="session", autouse=True)
def _memories_are_not_watched() -> Iterator[None]:
    """Each service looks for changes of its memories all the time, and once more before each search, which suffices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watchfiles, "awatch", _never_changes)
        yield


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A test that sets up the service's logs leaves those of the others alone."""
    known = logging.root.manager.loggerDict
    handlers, level, bound = logging.root.handlers[:], logging.root.level, structlog.get_config()
    levels = {name: logger.level for name, logger in known.items() if isinstance(logger, logging.Logger)}
    yield
    structlog.configure(**bound)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    for name, logger in known.items():
        if isinstance(logger, logging.Logger) and logger.level != levels.get(name, logging.NOTSET):
            logger.setLevel(levels.get(name, logging.NOTSET))


@pytest.fixture(autouse=True)
def _stand_ins_have_no_complaint(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test whose client broke a rule of a stand-in, or whose ordered faults and answers were not needed.

    As an automatic fixture it is set up before all others of the test, so that it asks after their end.
    """
    failed = request.session.testsfailed
    with inspected() as stand_ins:
        yield
        if request.session.testsfailed > failed:
            stand_ins.clear()  # what a broken test leaves undone is no news


@pytest.fixture(scope="session")
def long_steps() -> Iterator[list[str]]:
    """Measure each step of the event loop, which makes all of them dearer."""
    with stalls.watched() as said:
        yield said


@pytest.fixture(autouse=True)
def _the_loop_was_free(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which a part of the product held the event loop for too long, where STALLS asks for it."""
    long_steps: list[str] = request.getfixturevalue("long_steps") if os.environ.get("STALLS") else []
    long_steps.clear()
    yield
    assert not long_steps, "\n".join(long_steps)


@pytest.fixture(scope="session", autouse=True)
def past_loopback() -> Iterator[list[str]]:
    """Refuse every connection and every name look-up past loopback, and remember that it was tried."""
    tried: list[str] = []

    def guard(host: object) -> None:
        if not _is_loopback(host):
            tried.append(str(host))
            raise OSError(f"a test may not reach {host!r}: only loopback is allowed")

    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            guard(address[0])
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            guard(address[0])
        return connect_ex(self, address)

    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        guard(host)
        return look_up(host, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", getaddrinfo)
        yield tried


@pytest.fixture(autouse=True)
def _stayed_on_loopback(past_loopback: list[str]) -> Iterator[None]:
    """Fail a test that tried to leave, also when the code under test took the refusal for a bad network."""
    past_loopback.clear()
    yield
    assert not past_loopback, f"reached past loopback: {', '.join(past_loopback)}"


def _is_loopback(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(name)).is_loopback
    except ValueError:
        return False
