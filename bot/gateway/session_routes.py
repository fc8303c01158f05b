"""Sessions over HTTP, for owners: list, show, search, export, import, prune and forget."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, get_args

from pydantic import Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.gateway.access import Caller, caller, only_owners
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import HttpProblem, answer
from bot.persistence.sessions import NoSuchTranscript
from bot.sessions.foreign import NotImported
from bot.sessions.forgetting import Forget, NotForgotten
from bot.sessions.formats import MIMES, Format
from bot.sessions.service import MOST_HITS, Sessions

_HIDDEN = "Transcripts are for the owners of the bot."


class ImportBody(Body):
    """Body of POST /v1/sessions/import: the text of a file with its name, or over the socket the path of one."""

    text: str = ""
    name: Annotated[str, StringConstraints(max_length=200)] = "file"
    path: str = ""
    session: str = ""


class PruneBody(Body):
    """Body of POST /v1/sessions/prune. older_than: seconds."""

    older_than: Annotated[float, Field(ge=0)] | None = None
    keep: Annotated[int, Field(ge=1)] | None = None


class ForgetBody(Body):
    """Body of POST /v1/sessions/forget. who: "channel:id"."""

    who: str


class SessionRoutes:
    """Handlers of /v1/sessions."""

    def __init__(self, sessions: Sessions, forget: Forget) -> None:
        self._sessions = sessions
        self._forget = forget

    def routes(self) -> list[Route]:
        """Return the routes of the handlers."""
        return [
            Route("/v1/sessions", self.listed, methods=["GET"]),
            Route("/v1/sessions/show", self.show, methods=["GET"]),
            Route("/v1/sessions/search", self.search, methods=["GET"]),
            Route("/v1/sessions/export", self.export, methods=["GET"]),
            Route("/v1/sessions/import", self.take_in, methods=["POST"]),
            Route("/v1/sessions/prune", self.prune, methods=["POST"]),
            Route("/v1/sessions/forget", self.forget, methods=["POST"]),
        ]

    async def listed(self, request: Request) -> Response:
        """GET /v1/sessions, with `?session=KEY` those of one session."""
        only_owners(request, _HIDDEN)
        return answer(await self._sessions.listed(request.query_params.get("session")))

    async def show(self, request: Request) -> Response:
        """GET /v1/sessions/show?of=KEY|TRANSCRIPT: its lines."""
        only_owners(request, _HIDDEN)
        try:
            session, transcript, lines = await self._sessions.show(request.query_params.get("of", ""))
        except NoSuchTranscript as error:
            raise _unknown(error) from None
        return answer({"session": session, "transcript": transcript, "lines": lines})

    async def search(self, request: Request) -> Response:
        """GET /v1/sessions/search?words=…: the newest lines in which all of them stand."""
        only_owners(request, _HIDDEN)
        return answer(await self._sessions.search(request.query_params.get("words", ""), MOST_HITS))

    async def export(self, request: Request) -> Response:
        """GET /v1/sessions/export?of=KEY|TRANSCRIPT&format=jsonl|markdown|html: the file."""
        only_owners(request, _HIDDEN)
        form: Format | None = next(
            (one for one in get_args(Format) if one == request.query_params.get("format", "jsonl")), None
        )
        if form is None:
            raise HttpProblem(422, "invalid", "`format` is jsonl, markdown or html.")
        try:
            exported = await self._sessions.export(request.query_params.get("of", ""), form)
        except NoSuchTranscript as error:
            raise _unknown(error) from None
        headers = {
            "Content-Disposition": f'attachment; filename="{exported.name}"',
            "X-Content-Type-Options": "nosniff",
        }
        return Response(exported.text, headers=headers, media_type=MIMES[form])

    async def take_in(self, request: Request) -> Response:
        """POST /v1/sessions/import: what became of the file."""
        only_owners(request, _HIDDEN)
        body = parse_body(ImportBody, await read_body(request))
        if body.path and caller(request) is not Caller.SOCKET:
            raise HttpProblem(403, "owners_only", "Only over the Unix socket files are named by their path.")
        try:
            if body.path:
                return answer(await self._sessions.take_in_file(Path(body.path), body.session))
            return answer(await self._sessions.take_in(body.text, body.name, body.session))
        except NotImported as error:
            raise HttpProblem(422, "not_imported", str(error)) from None

    async def prune(self, request: Request) -> Response:
        """POST /v1/sessions/prune: how many transcripts were deleted."""
        only_owners(request, _HIDDEN)
        body = parse_body(PruneBody, await read_body(request))
        span = None if body.older_than is None else timedelta(seconds=body.older_than)
        return answer({"pruned": await self._sessions.prune(span, body.keep)})

    async def forget(self, request: Request) -> Response:
        """POST /v1/sessions/forget: deletes a person's data. 404 when nothing is stored of them."""
        only_owners(request, _HIDDEN)
        body = parse_body(ForgetBody, await read_body(request))
        try:
            return answer({"text": await self._forget.forget_person(body.who)})
        except NotForgotten as error:
            raise HttpProblem(404, "not_forgotten", str(error)) from None


def _unknown(error: NoSuchTranscript) -> HttpProblem:
    return HttpProblem(404, "no_such_transcript", str(error), "GET /v1/sessions lists them.")
