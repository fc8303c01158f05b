"""A violation that nobody asked about fails its test: the real conftest, at work on tests that do not look."""

import os
from pathlib import Path

import pytest

from tests.standins.inspection import inspected, made
from tests.standins.script import Fail, Script
from tests.standins.telegram_server import TelegramServer

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

TESTS = """
import aiohttp
import pytest

from tests.standins.anthropic_server import AnthropicServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.telegram_ledger import Rule
from tests.standins.telegram_server import TelegramServer

CALLS = {
    TelegramServer: (lambda server: f"{server.base_url}{server.token}/sendMessage", (Rule.FORMATTING, Rule.BAD_VALUE)),
    AnthropicServer: (lambda server: server.url + server.path, ("is malformed",)),
    OpenAIServer: (lambda server: server.url + server.path, ("is malformed",)),
}
KEYS = {"x-api-key": "test-key", "authorization": "Bearer test-key", "anthropic-version": "2023-06-01"}


async def misuse(server):
    async with aiohttp.ClientSession() as http, http.post(CALLS[type(server)][0](server), json={}, headers=KEYS) as got:
        assert got.status == 400


@pytest.fixture(params=CALLS, ids=lambda kind: kind.__name__)
async def server(request):
    async with request.param() as server:
        yield server


async def test_looks_away(server):
    await misuse(server)


async def test_makes_its_own():
    for kind in CALLS:
        server = kind()
        await server.start()
        await misuse(server)
        await server.stop()


async def test_says_so(server):
    server.tolerate(*CALLS[type(server)][1])
    await misuse(server)


async def test_does_nothing_wrong(server):
    pass


async def test_orders_a_fault_in_vain():
    TelegramServer().fail_next("getMe")


async def test_writes_an_answer_in_vain():
    AnthropicServer().add("nobody hears this")


async def test_fails_by_itself(server):
    await misuse(server)
    raise ValueError("for another reason")
"""


def test_violation_that_nobody_asked_about_fails_its_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.fspath(ROOT))
    pytester.makepyfile(TESTS)
    run = pytester.runpytest_subprocess("-p", "tests.conftest", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider")
    run.assert_outcomes(passed=3 + 3 + 3 + 3, errors=3 + 3, failed=3)
    errors = [line.split(" - ")[0].rpartition("::")[2] for line in run.outlines if line.startswith("ERROR ")]
    assert errors == [
        "test_looks_away[TelegramServer]",
        "test_looks_away[AnthropicServer]",
        "test_looks_away[OpenAIServer]",
        "test_makes_its_own",
        "test_orders_a_fault_in_vain",
        "test_writes_an_answer_in_vain",
    ]
    for words in ("sendMessage: Bad Request", "AnthropicServer: request 1", "OpenAIServer: request 1"):
        assert sum(words in line for line in run.outlines if line.startswith("E ")) == 2


def test_every_complaint_of_all_stand_ins_is_told() -> None:
    def misuse() -> None:
        Script().add(Fail(500))
        Script().violations.append("wrong")
        TelegramServer().fail_next("getMe", times=2)

    with pytest.raises(AssertionError) as told, inspected():
        misuse()
    assert [part in str(told.value) for part in ("Script: unused", "Script: wrong", "getMe: 0 of 2")] == [True] * 3


def test_nobody_is_asked_after_an_error_or_outside_of_a_test() -> None:
    with pytest.raises(ZeroDivisionError), inspected():
        Script().violations.append(f"{1 / 0}")
    with inspected() as outer:
        with inspected() as inner:
            script = Script()
        made(script)
    assert (outer, inner) == ([script], [script])
