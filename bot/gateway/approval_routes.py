"""What waits for a decision over HTTP, for owners: look at it, decide, and take back what is allowed for always."""

from collections.abc import Callable
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from bot.approvals.decisions import NotDecided
from bot.approvals.requests import Requests
from bot.gateway.access import Caller, caller, only_owners
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import HttpProblem, answer
from bot.people.access import OWNER
from bot.persistence.approvals import VERDICTS, Choice

_REFUSAL = "Decisions are for owners."
_STATUS = {"no_such_request": 404, "no_such_rule": 404, "ambiguous": 409, "ended": 409, "invalid": 422}


class DecisionBody(Body):
    """Body of POST /v1/approvals/{id}."""

    decision: Literal["once", "always", "deny", "answer"]
    # For the model; of an answer its text, or the number of an option.
    reason: str = ""
    # With "once" the numbers of the calls that alone may run; empty: all of them.
    only: tuple[int, ...] = ()
    # With "always" the seconds for which it is allowed, in that session; 0: without an end, everywhere.
    seconds: float = 0


class ForgetBody(Body):
    """Body of POST /v1/approvals/rules. forget: `what` of a rule."""

    forget: str


class ApprovalRoutes:
    """The handlers of /v1/approvals."""

    def __init__(self, requests: Requests, clean: Callable[[str], str]) -> None:
        """clean: returns a text without secrets."""
        self._requests, self._clean = requests, clean

    async def show(self, request: Request) -> Response:
        """GET /v1/approvals: what waits, oldest first."""
        only_owners(request, _REFUSAL)
        return answer(await self._requests.approvals())

    async def decide(self, request: Request) -> Response:
        """POST /v1/approvals/{id}: an id, or the digits of one that are shown."""
        only_owners(request, _REFUSAL)
        body = parse_body(DecisionBody, await read_body(request))
        verdict, reason = VERDICTS[body.decision], self._clean(body.reason)
        choice = Choice(verdict=verdict, reason=reason, picked=body.only, seconds=body.seconds)
        try:
            return answer(await self._requests.settle(request.path_params["id"], choice, named(request)))
        except NotDecided as error:
            raise HttpProblem(_STATUS[error.code], error.code, str(error).replace("**", "")) from None

    async def rules(self, request: Request) -> Response:
        """GET /v1/approvals/rules: what is allowed for more than one call."""
        only_owners(request, _REFUSAL)
        return answer(await self._requests.grants.rules())

    async def forget(self, request: Request) -> Response:
        """POST /v1/approvals/rules: allow something no more."""
        only_owners(request, _REFUSAL)
        body = parse_body(ForgetBody, await read_body(request))
        if not await self._requests.grants.forget(body.forget):
            raise HttpProblem(404, "no_such_rule", "There is no such rule.")
        return answer({})


def named(request: Request) -> str:
    """How an owner who calls is kept as who decided, "channel:id"."""
    return f"{'console' if caller(request) is Caller.SOCKET else 'http'}:{OWNER}"
