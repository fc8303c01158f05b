"""Runs over HTTP: submit a message, look at its run, wait for it, abort it, steer it.

A run belongs to its session: a client that goes away, or whose wait ends, changes nothing about it.
"""

import re
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from bot import wording
from bot.clock import moment
from bot.gateway.access import Caller, caller
from bot.gateway.agent_api import OPEN, AgentApi, Wishes
from bot.gateway.answers import HttpProblem, answer, let_last, unless_left
from bot.gateway.views import RunView, waiting
from bot.people.access import OWNER, PERSON
from bot.persistence.approvals import Approval
from bot.persistence.turns import TurnState, TurnView
from channels.console.adapter import PLACE as CONSOLE
from channels.message import ChatKind, Place
from channels.session_key import CHILD, console_key, http_key, parse, root_of

# Bytes of a request's body.
BODY_LIMIT = 1_000_000
DEFAULT_NAME = "default"
DEFAULT_WAIT = 30.0
LONGEST_WAIT = 3600.0
_LATER = ("attachments", "timeout_seconds", "deliver_to")
_KEY = re.compile(r"[!-~]{1,200}")
_STATUS = {
    TurnState.QUEUED: "queued",
    TurnState.RUNNING: "running",
    TurnState.PARKED: "waiting_approval",
    TurnState.DONE: "ok",
    TurnState.FAILED: "error",
    TurnState.STOPPED: "aborted",
}


class Body(BaseModel):
    """Base of the bodies of requests."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SteerBody(Body):
    """Body of POST /v1/agent/{run_id}/steer."""

    message: Annotated[str, StringConstraints(pattern=r"\S")]


class SubmitBody(SteerBody):
    """Body of POST /v1/agent. session: a session key, or a name of the caller's choice. The rest: see `Wishes`.

    typed: of the terminal alone; elsewhere it changes nothing.
    """

    session: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    extra_context: str = ""
    model: str = ""
    thinking: Literal["", "auto", "off", "low", "medium", "high", "x-high"] = ""
    typed: bool = False


B = TypeVar("B", bound=Body)


class AgentRoutes:
    """The handlers of /v1/agent."""

    def __init__(self, api: AgentApi) -> None:
        self._api = api

    async def submit(self, request: Request) -> Response:
        """POST /v1/agent."""
        idempotency_key = request.headers.get("idempotency-key")
        if idempotency_key is not None and not _KEY.fullmatch(idempotency_key):
            raise _invalid("Idempotency-Key must be 1 to 200 visible ASCII characters.")
        body = parse_body(SubmitBody, await read_body(request))
        session_key = _of_people(resolve_session(body.session or DEFAULT_NAME))
        caller(request).check_session(session_key)
        place = Place(channel="http", account="", chat=body.session or DEFAULT_NAME, kind=ChatKind.API)
        if caller(request) is Caller.SOCKET and session_key == console_key():
            place = CONSOLE
        if body.model and not self._api.knows(body.model):
            raise _invalid(f"`{body.model[:100]}` is no model that can be asked.", "Name it as provider/model.")
        typed = body.typed and place is CONSOLE
        wishes = Wishes(extra_context=body.extra_context, model=body.model, thinking=body.thinking, typed=typed)
        view = await self._api.submit(body.message, session_key, place, _sender(request), idempotency_key, wishes)
        if view is None:
            found = "This Idempotency-Key came with another request before."
            raise HttpProblem(409, "idempotency_conflict", found, "Use a new key for a new message.")
        accepted = {"run_id": view.turn_id, "status": "accepted", "accepted_at": moment(view.accepted_at)}
        return answer(accepted, 202)

    async def show(self, request: Request) -> Response:
        """GET /v1/agent/{run_id}, with `?wait=S`; a wait ends when nobody waits for its answer any more."""
        seconds = _wait_of(request)
        if seconds is None:
            return answer(await self._view(await self._seen(request), request))

        def look(view: TurnView | None) -> None:
            if seen_by(caller(request), view).state in OPEN:
                let_last(request)

        waiting = self._api.wait(request.path_params["run_id"], seconds, look)
        view = seen_by(caller(request), await unless_left(request, waiting))
        return answer(await self._view(view, request), 202 if view.state in OPEN else 200)

    async def abort(self, request: Request) -> Response:
        """DELETE /v1/agent/{run_id}."""
        if not await self._api.abort((await self._seen(request)).turn_id):
            raise _ended()
        return answer(await self._view(await self._seen(request), request))

    async def steer(self, request: Request) -> Response:
        """POST /v1/agent/{run_id}/steer."""
        body = parse_body(SteerBody, await read_body(request))
        view = await self._seen(request)
        _of_people(view.session_key)
        run_id = view.turn_id
        if not await self._api.steer(run_id, body.message, _sender(request)):
            raise _ended(", or somebody else has asked for it" if caller(request) is Caller.PERSON else "")
        return answer({"run_id": run_id, "status": "accepted"}, 202)

    async def _view(self, view: TurnView, request: Request) -> RunView:
        parked = view.state is TurnState.PARKED
        return _run_view(view, request, await self._api.waits_for(view.turn_id) if parked else None)

    async def _seen(self, request: Request) -> TurnView:
        """The run of the path, if it is the caller's business. Raises HttpProblem."""
        return seen_by(caller(request), await self._api.turn(request.path_params["run_id"]))


def resolve_session(session: str) -> str:
    """A session key as it is, a plain name as the key it stands for. Raises HttpProblem for a key that is none."""
    if not session.startswith("agent:"):
        return http_key(session)
    try:
        parse(session)
    except ValueError:
        hint = "Use a plain name, or a key that Hark has shown you."
        raise _invalid(f"`session`: {session[:200]!r} is not a session key.", hint) from None
    return session


def _of_people(session_key: str) -> str:
    """Return the key of a session. Raises HttpProblem for that of a sub-agent, which would answer nobody."""
    if CHILD in session_key:
        found = "This is a sub-agent: only the conversation that has started it writes to it."
        raise _invalid(found, f"Write to {root_of(session_key)}.")
    return session_key


async def read_body(request: Request) -> bytes:
    """The body, if it is not too long. Raises HttpProblem."""
    declared = request.headers.get("content-length", "0")
    chunks = bytearray()
    if len(declared) <= 7 and int(declared) <= BODY_LIMIT:
        async for chunk in request.stream():
            chunks += chunk
            if len(chunks) > BODY_LIMIT:
                break
        else:
            return bytes(chunks)
    raise HttpProblem(413, "too_long", f"The body has more than {BODY_LIMIT} bytes.", "Send less text.")


def parse_body(model: type[B], body: bytes) -> B:
    """A request's body as it has to be. Raises HttpProblem."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise _explain(error) from None


def _explain(error: ValidationError) -> HttpProblem:
    """The first mistake of a body, in words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden" and key in _LATER:
        return HttpProblem(422, "not_in_this_version", f"`{key}` is not in this version yet.", "Leave it out.")
    if first["type"] == "extra_forbidden":
        return _invalid(f"`{key[:100]}` is not known here.", "Leave it out.")
    if first["type"] == "string_pattern_mismatch":
        return _invalid(f"`{key}` is empty.")
    if not key:
        return _invalid(f"The body is not a JSON object: {first['msg']}.")
    return _invalid(f"`{key}`: {first['msg']}.")


def _wait_of(request: Request) -> float | None:
    """Seconds of `?wait`, None without it."""
    text = request.query_params.get("wait")
    if text is None:
        return None
    try:
        seconds = float(text) if text else DEFAULT_WAIT
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_WAIT:
        raise _invalid(f"`wait`: a number of seconds from 0 to {LONGEST_WAIT:g}.")
    return seconds


def seen_by(caller: Caller, view: TurnView | None) -> TurnView:
    """The run, as this caller may see it. Raises HttpProblem: one not open to them is as if it were not there."""
    if view is None or not view.session_key.startswith(caller.sessions):
        raise HttpProblem(404, "no_such_run", "There is no run of that id.")
    return view


def _sender(request: Request) -> str:
    return PERSON if caller(request) is Caller.PERSON else OWNER


def _run_view(view: TurnView, request: Request, waits_for: Approval | None) -> RunView:
    status = _STATUS[view.state]
    if view.state is TurnState.PARKED and waits_for is None:  # until a model works again
        status = _STATUS[TurnState.QUEUED]
    if view.outcome in ("timeout", "limit"):
        status = view.outcome
    error = None
    if view.state is TurnState.FAILED:
        error = {"kind": view.error_kind or "internal", "message": wording.failure(view.error_kind)}
        if caller(request) is not Caller.PERSON and view.error_message:
            error["detail"] = view.error_message
    return RunView(
        run_id=view.turn_id,
        session=view.session_key,
        status=status,
        accepted_at=moment(view.accepted_at),
        started_at=None if view.started_at is None else moment(view.started_at),
        ended_at=None if view.ended_at is None else moment(view.ended_at),
        text=view.text,
        media=(),
        usage=view.usage,
        error=error,
        waiting_for=waiting(waits_for) if waits_for else None,
    )


def _invalid(message: str, hint: str = "") -> HttpProblem:
    return HttpProblem(422, "invalid", message, hint)


def _ended(otherwise: str = "") -> HttpProblem:
    return HttpProblem(409, "ended", f"This run has ended already{otherwise}.")
