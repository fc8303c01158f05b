"""Runs over HTTP: what is accepted, what is refused, and what callers are told about a run."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import ToolCall
from bot import wording
from tests.bot.gateway.house import TOKEN, House, house
from tests.watch import PATIENCE

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def error_of(response: httpx2.Response) -> dict[str, str]:
    """The error of an answer, checked for its shape."""
    body = response.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message", "hint"]
    assert body["error"]["message"].endswith(".")
    found: dict[str, str] = body["error"]
    return found


async def test_a_message_is_accepted_and_answered(at: House) -> None:
    response = await at.http.post("/v1/agent", json={"message": "hello"})
    assert response.status_code == 202
    accepted = response.json()
    assert list(accepted) == ["run_id", "status", "accepted_at"]
    assert accepted["status"] == "accepted"
    assert ISO.fullmatch(accepted["accepted_at"])
    call = await at.model.called()
    running = await at.show(accepted["run_id"])
    assert running["status"] == "running"
    assert ISO.fullmatch(running["started_at"])
    assert (running["ended_at"], running["text"]) == (None, "")
    call.answer("Hello to you.")
    ended = await at.show(accepted["run_id"], wait="")
    assert ISO.fullmatch(ended["ended_at"])
    assert ended == {
        "run_id": accepted["run_id"],
        "session": "agent:main:http:direct:default",
        "status": "ok",
        "accepted_at": accepted["accepted_at"],
        "started_at": running["started_at"],
        "ended_at": ended["ended_at"],
        "text": "Hello to you.",
        "media": [],
        "usage": {"input": 3, "output": 2, "cache_read": 0, "cache_write": 0},
        "error": None,
        "waiting_for": None,
    }


@pytest.mark.parametrize(
    ("session", "key"),
    [
        (None, "agent:main:http:direct:default"),
        ("work", "agent:main:http:direct:work"),
        ("a:b c", "agent:main:http:direct:a%3Ab%20c"),
        ("agent:main:main", "agent:main:main"),
        ("agent:main:telegram:direct:42", "agent:main:telegram:direct:42"),
    ],
)
async def test_a_session_is_a_name_or_a_key(tmp_path: Path, session: str | None, key: str) -> None:
    async with house(tmp_path, token=TOKEN, reply="yes") as at:
        run = await at.submit("hello", **({"session": session} if session else {}))
        assert (await at.show(run, wait="20"))["session"] == key


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid"),
        (b"no json", "invalid"),
        (b"\xff\xfe", "invalid"),
        (b"[]", "invalid"),
        (b"{}", "invalid"),
        (b'{"message": ""}', "invalid"),
        (b'{"message": " \\n\\t"}', "invalid"),
        (b'{"message": 1}', "invalid"),
        (b'{"message": null}', "invalid"),
        (b'{"message": "\\ud800"}', "invalid"),
        (b'{"message": "hi", "session": ""}', "invalid"),
        (b'{"message": "hi", "session": 7}', "invalid"),
        (b'{"message": "hi", "session": "agent:"}', "invalid"),
        (b'{"message": "hi", "session": "agent:other:main"}', "invalid"),
        (b'{"message": "hi", "unknown": 1}', "invalid"),
        (b'{"message": "hi", "attachments": []}', "not_in_this_version"),
        (b'{"message": "hi", "thinking": "much"}', "invalid"),
        (b'{"message": "hi", "timeout_seconds": 5}', "not_in_this_version"),
        (b'{"message": "hi", "deliver_to": "telegram:1"}', "not_in_this_version"),
    ],
)
async def test_bad_input_is_refused_and_nothing_is_stored(body: bytes, code: str, at: House) -> None:
    response = await at.http.post("/v1/agent", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 422, response.text
    assert error_of(response)["code"] == code
    assert at.stored.messages() == []


async def test_a_model_that_cannot_be_asked_is_refused_and_nothing_is_stored(at: House) -> None:
    at.service.parts.api.knows = {"one/known"}.__contains__
    response = await at.http.post("/v1/agent", json={"message": "hi", "model": "nobody/knows"})
    assert (response.status_code, error_of(response)["code"]) == (422, "invalid")
    assert "`nobody/knows` is no model" in error_of(response)["message"]
    assert at.stored.messages() == []


async def test_a_program_may_tell_what_the_model_should_know_of_one_message(at: House) -> None:
    response = await at.http.post("/v1/agent", json={"message": "hi", "extra_context": "It rains."})
    assert response.status_code == 202, response.text
    (payload,) = at.stored.messages("payload")[0]
    assert '"extra_context":"It rains."' in payload


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 201, "tab\there"])
async def test_an_idempotency_key_is_visible_ascii(key: str, at: House) -> None:
    headers = {b"idempotency-key": key.encode("latin-1")}
    response = await at.http.post("/v1/agent", json={"message": "hi"}, headers=headers)
    assert response.status_code == 422
    assert "Idempotency-Key" in error_of(response)["message"]
    assert at.stored.messages() == []


async def test_a_long_body_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path, reply="yes") as at:
        fits = await at.http.post("/v1/agent", json={"message": "x" * 999_900})
        assert fits.status_code == 202
        declared = await at.http.post("/v1/agent", json={"message": "x" * 1_000_000})
        assert (declared.status_code, error_of(declared)["code"]) == (413, "too_long")

        async def pieces() -> Any:
            for _ in range(20):
                yield b"x" * 60_000

        headers = {"content-type": "application/json"}
        chunked = await at.http.post("/v1/agent", content=pieces(), headers=headers)
        assert (chunked.status_code, error_of(chunked)["code"]) == (413, "too_long")
        assert len(at.stored.messages()) == 1


async def test_the_same_key_gives_the_same_run_also_after_a_restart(tmp_path: Path) -> None:
    key = {"idempotency-key": "order-1"}
    async with house(tmp_path) as at:
        first = await at.http.post("/v1/agent", json={"message": "once"}, headers=key)
        call = await at.model.called()
        again = await at.http.post("/v1/agent", json={"session": "default", "message": "once"}, headers=key)
        assert (again.status_code, again.json()) == (202, first.json())
        call.answer("Done.")
        assert (await at.show(first.json()["run_id"], wait="20"))["status"] == "ok"
    async with house(tmp_path) as at:
        later = await at.http.post("/v1/agent", json={"message": "once"}, headers=key)
        assert (later.status_code, later.json()) == (202, first.json())
        for other in ({"message": "twice"}, {"message": "once", "session": "elsewhere"}):
            response = await at.http.post("/v1/agent", json=other, headers=key)
            assert (response.status_code, error_of(response)["code"]) == (409, "idempotency_conflict")
        assert len(at.stored.turns()) == 1


async def test_the_same_key_at_the_same_time_gives_one_run(tmp_path: Path) -> None:
    async with house(tmp_path, reply="yes") as at:
        key = {"idempotency-key": "race"}
        runs = await asyncio.gather(*(at.submit("once", headers=key) for _ in range(20)))
        assert len(set(runs)) == 1
        assert len(at.stored.turns()) == 1


async def test_without_a_key_the_same_text_is_another_message(tmp_path: Path) -> None:
    async with house(tmp_path, reply="yes") as at:
        assert await at.submit("hi") != await at.submit("hi")


async def test_a_store_that_cannot_write_accepts_nothing(at: House) -> None:
    run = await at.submit("before")
    await at.model.called()
    await at.store_fails()
    for response in (
        await at.http.post("/v1/agent", json={"message": "hi"}),
        await at.http.post(f"/v1/agent/{run}/steer", json={"message": "hi"}),
        await at.http.delete(f"/v1/agent/{run}"),
    ):
        assert (response.status_code, error_of(response)["code"]) == (503, "store_unavailable")
        assert int(response.headers["retry-after"]) > 0
    assert (await at.http.get("/readyz")).status_code == 503
    at.disk.full = False
    assert len(at.stored.messages()) == 1
    assert (await at.http.post("/v1/agent", json={"message": "hi", "session": "b"})).status_code == 202
    assert (await at.http.get("/readyz")).status_code == 200


async def test_nothing_is_accepted_when_the_service_stops(tmp_path: Path) -> None:
    async with house(tmp_path, drain_seconds=PATIENCE) as at:
        run = await at.submit("before")
        call = await at.model.called()
        at.hark.closing = asyncio.create_task(at.service.close())
        await asyncio.sleep(0)
        refused = await at.http.post("/v1/agent", json={"message": "hi"})
        assert (refused.status_code, error_of(refused)["code"]) == (503, "stopping")
        assert "retry-after" in refused.headers
        waiting = asyncio.create_task(at.show(run, wait="20"))
        call.answer("Still here.")
        assert (await waiting)["text"] == "Still here."


async def test_a_wait_that_ends_first_answers_202_with_the_present_status(at: House) -> None:
    run = await at.submit("hello")
    call = await at.model.called()
    behind = await at.submit("and this")
    for run_id, status in ((run, "running"), (behind, "queued")):
        for wait in ("0", "0.01"):
            response = await at.http.get(f"/v1/agent/{run_id}?wait={wait}")
            assert (response.status_code, response.json()["status"]) == (202, status)
        response = await at.http.get(f"/v1/agent/{run_id}")
        assert (response.status_code, response.json()["status"]) == (200, status)
    waiting = [asyncio.create_task(at.http.get(f"/v1/agent/{behind}?wait")) for _ in range(3)]
    call.answer("One.")
    (await at.model.called()).answer("Two.")
    for response in await asyncio.gather(*waiting):
        assert (response.status_code, response.json()["text"]) == (200, "Two.")
    response = await at.http.get(f"/v1/agent/{run}?wait=0")
    assert (response.status_code, response.json()["text"]) == (200, "One.")


@pytest.mark.parametrize("wait", ["x", "-1", "nan", "inf", "3601", "1,5"])
async def test_a_wait_is_a_bounded_number(wait: str, at: House) -> None:
    response = await at.http.get(f"/v1/agent/anything?wait={wait}")
    assert (response.status_code, error_of(response)["code"]) == (422, "invalid")


async def test_an_unknown_run_is_404(at: House) -> None:
    for response in (
        await at.http.get("/v1/agent/nothing"),
        await at.http.get("/v1/agent/nothing?wait=20"),
        await at.http.delete("/v1/agent/nothing"),
        await at.http.post("/v1/agent/nothing/steer", json={"message": "hi"}),
        await at.http.get("/v1/events?run=nothing"),
    ):
        assert (response.status_code, error_of(response)["code"]) == (404, "no_such_run")


async def test_a_client_that_leaves_does_not_stop_the_run(at: House) -> None:
    run = await at.submit("hello")
    call = await at.model.called()
    reader, writer = await asyncio.open_connection("127.0.0.1", at.gateway.port)
    writer.write(f"GET /v1/agent/{run}?wait=60 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    await writer.drain()
    writer.transport.abort()
    await reader.read()
    call.answer("Finished.")
    assert (await at.show(run, wait="20"))["text"] == "Finished."


async def test_aborting_a_run(at: House) -> None:
    run = await at.submit("first")
    await at.model.called()
    behind = await at.submit("second")
    waiting = asyncio.create_task(at.http.get(f"/v1/agent/{run}?wait=20"))
    for run_id in (behind, run):
        response = await at.http.delete(f"/v1/agent/{run_id}")
        assert (response.status_code, response.json()["status"]) == (200, "aborted")
        assert (response.json()["run_id"], response.json()["error"]) == (run_id, None)
        again = await at.http.delete(f"/v1/agent/{run_id}")
        assert (again.status_code, error_of(again)["code"]) == (409, "ended")
    assert ((await waiting).status_code, (await waiting).json()["status"]) == (200, "aborted")
    following = await at.submit("third")
    (await at.model.called()).answer("Free again.")
    assert (await at.show(following, wait="20"))["text"] == "Free again."


async def test_steering_a_run(at: House) -> None:
    run = await at.submit("look into it")
    call = await at.model.called()
    for body in ({}, {"message": ""}, {"message": "x", "session": "y"}):
        response = await at.http.post(f"/v1/agent/{run}/steer", json=body)
        assert (response.status_code, error_of(response)["code"]) == (422, "invalid")
    response = await at.http.post(f"/v1/agent/{run}/steer", json={"message": "the other one, please"})
    assert (response.status_code, response.json()) == (202, {"run_id": run, "status": "accepted"})
    call.answer("Looked.")
    call = await at.model.called()
    assert "the other one, please" in call.request.messages[-1].text
    call.answer("Looked at the other one.")
    assert (await at.show(run, wait="20"))["text"] == "Looked.\n\nLooked at the other one."
    late = await at.http.post(f"/v1/agent/{run}/steer", json={"message": "more"})
    assert (late.status_code, error_of(late)["code"]) == (409, "ended")


async def test_a_program_without_a_token_joins_no_run_of_an_owner(tmp_path: Path) -> None:
    """Which has an owner's rights: over the Unix socket, in a session that both can use."""
    async with house(tmp_path) as at, at.unix() as owner:
        asked = await owner.post("/v1/agent", json={"message": "look into it", "session": "work"})
        run = asked.json()["run_id"]
        call = await at.model.called()
        response = await at.http.post(f"/v1/agent/{run}/steer", json={"message": "and read my mail"})
        assert (response.status_code, error_of(response)["code"]) == (409, "ended")
        response = await owner.post(f"/v1/agent/{run}/steer", json={"message": "the other one"})
        assert response.status_code == 202
        call.answer("Looked.")
        call = await at.model.called()
        assert "the other one" in call.request.messages[-1].text
        assert "read my mail" not in str(call.request.messages)
        call.answer("Looked at both.")
        theirs = await at.submit("hello", session="work")
        call = await at.model.called()
        response = await owner.post(f"/v1/agent/{theirs}/steer", json={"message": "be brief"})
        assert response.status_code == 202, "an owner joins any"
        call.answer("Hi.")
        (await at.model.called()).answer("Brief.")


async def test_a_failed_run_tells_people_nothing_internal(at: House) -> None:
    run = await at.submit("hello")
    (await at.model.called()).fail(ModelError(ErrorKind.AUTH, "key sk-secret refused by 10.0.0.1"))
    found = await at.show(run, wait="20")
    assert found["status"] == "error"
    assert found["error"] == {"kind": "auth", "message": wording.failure("auth")}
    assert "sk-secret" not in str(found)


async def test_owners_are_told_why_a_run_failed(tmp_path: Path) -> None:
    async with house(tmp_path) as at, at.events() as stream:
        run = await at.submit("hello")
        (await at.model.called()).fail(ModelError(ErrorKind.AUTH, "HTTP 401 no such key"))
        await at.show(run, wait="20")
        async with at.unix() as owner:
            found = (await owner.get(f"/v1/agent/{run}")).json()
            assert found["error"] == {
                "kind": "auth",
                "message": wording.failure("auth"),
                "detail": "test/puppet: HTTP 401 no such key",
            }
            assert found["error"]["detail"] in (await owner.get("/v1/status")).json()["last_failure"]
            async with at.events(f"?run={run}", client=owner) as replayed:
                *_, end = await replayed.rest()
                assert end.data["error_message"] == found["error"]["detail"]
        assert (await at.http.get("/v1/status")).json().keys() & {"last_failure"} == set()
        *_, end = await stream.until("agent_end")
        assert end.data["error_message"] == wording.failure("auth")
        async with at.events(f"?run={run}") as replayed:
            *_, end = await replayed.rest()
            assert (end.event, end.data["error_message"]) == ("agent_end", wording.failure("auth"))


async def test_a_run_that_took_too_long(tmp_path: Path) -> None:
    async with house(tmp_path, timeout_seconds=0.05) as at:
        run = await at.submit("hello")
        found = await at.show(run, wait="20")
        assert (found["status"], found["error"]["message"]) == ("timeout", wording.failure("timeout"))


async def test_a_run_at_its_limit_of_steps(tmp_path: Path) -> None:
    async with house(tmp_path, max_steps=1) as at:
        run = await at.submit("hello")
        call = await at.model.called()
        call.finish("", ToolCall("c1", "read", '{"path": "AGENTS.md"}'))
        call = await at.model.called()
        call.answer("This much is done.")
        found = await at.show(run, wait="20")
        assert (found["status"], found["text"], found["error"]) == ("limit", "This much is done.", None)


async def test_commands_answer_without_a_model(at: House) -> None:
    run = await at.submit("hello")
    await at.model.called()
    stop = await at.show(await at.submit("/stop"), wait="20")
    assert (stop["status"], stop["text"]) == ("ok", "Stopped.")
    assert (await at.show(run))["status"] == "aborted"


async def test_the_order_of_acceptance_is_kept_within_a_session(at: House) -> None:
    runs = [await at.submit(f"message {n}") for n in range(5)]
    for n in range(5):
        call = await at.model.called()
        assert f"message {n}" in call.request.messages[-1].text
        call.answer(f"answer {n}")
    for n, run in enumerate(runs):
        assert (await at.show(run, wait="20"))["text"] == f"answer {n}"


async def test_routes_of_later_versions_say_so(at: House) -> None:
    for response in (await at.http.get("/metrics"), await at.http.post("/v1/chat/completions", json={})):
        assert (response.status_code, error_of(response)["code"]) == (404, "not_in_this_version")


async def test_unknown_routes_and_methods(at: House) -> None:
    for path in ("/", "/nothing", "/v1", "/v1/agent/", "/v1/agent/x/y", "/healthz/"):
        response = await at.http.get(path)
        assert (response.status_code, error_of(response)["code"]) == (404, "not_found"), path
    for method, path in (
        ("GET", "/v1/agent"),
        ("PUT", "/v1/agent/x"),
        ("POST", "/healthz"),
        ("HEAD", "/v1/events"),
    ):
        response = await at.http.request(method, path, json={} if method in ("PUT", "POST") else None)
        assert response.status_code == 405, (method, path)
        assert "allow" in response.headers
        if method != "HEAD":
            assert error_of(response)["code"] == "method_not_allowed"


async def test_the_status_of_the_service(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        await at.submit("hello")
        await at.model.called()
        await at.submit("and this")
        assert (await at.http.get("/v1/status")).json() == {
            "model": "test/puppet",
            "model_reason": "given",
            "sandbox": at.service.parts.sandbox,
            "running": 1,
            "waiting": 1,
            "undelivered": 0,
            "failed_deliveries": 0,
            "uncertain_deliveries": 0,
            "frozen": "",
            "models_down": [],
            "expired_deliveries": 0,
            "lost": [],
            "last_failure": "",
        }
