"""Sending over HTTP, for owners: words of theirs, or of a program of theirs, into a conversation as the bot."""

import re
import uuid
from dataclasses import replace
from typing import Annotated

from pydantic import Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.errors import ToolError
from bot.gateway.access import only_owners
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import HttpProblem, answer
from bot.outbox import Outbox
from bot.people.conversations import Conversations
from bot.persistence.deliveries import OwnerNotice
from bot.store.store import Store
from channels.actions import ActionFailed
from channels.base import Channel
from channels.message import Origin
from channels.session_key import parse
from channels.sources import sentence

# Seconds for which the answer waits for the platform.
PATIENCE = 20.0
_KEY = re.compile(r"[!-~]{1,200}")


class SendBody(Body):
    """Body of POST /v1/send. to: `<channel>:<chat or name>`, or the key of a session that is such a conversation."""

    to: Annotated[str, Field(min_length=1, max_length=500)]
    text: Annotated[str, StringConstraints(pattern=r"\S")]


class SendRoutes:
    """The handler of /v1/send."""

    def __init__(self, store: Store, outbox: Outbox, conversations: Conversations) -> None:
        self._store = store
        self._outbox = outbox
        self._conversations = conversations

    def routes(self) -> list[Route]:
        """Return the routes of the handlers."""
        return [Route("/v1/send", self.send, methods=["POST"])]

    async def send(self, request: Request) -> Response:
        """POST /v1/send: what became of it. 404 where no such conversation is let in. Sent once per Idempotency-Key."""
        only_owners(request, "Only owners send what the bot says.")
        body = parse_body(SendBody, await read_body(request))
        key = request.headers.get("idempotency-key", uuid.uuid4().hex)
        if not _KEY.fullmatch(key):
            raise HttpProblem(422, "invalid", "Idempotency-Key must be 1 to 200 visible ASCII characters.")
        try:
            place = (await self._found(body.to)).place
        except (ToolError, ActionFailed) as error:
            raise HttpProblem(404, "no_such_conversation", str(error)) from None
        if any(one.what in ("all", "network") for one in await self._store.freezes.all()):
            raise HttpProblem(409, "frozen", "Sending is frozen.", "`hark thaw` lets it go on.")
        source = sentence("sent", key)
        said = OwnerNotice((), place, lambda where: self._outbox.notice(source, body.text, where.channel, ours=False))
        await self._store.deliveries.tell_owner(said)
        await self._outbox.serve_open()
        fate = await self._outbox.outcome(source, PATIENCE)
        return answer({"state": fate.state, "ids": fate.ids, "reason": fate.reason})

    async def _found(self, to: str) -> Origin:
        """Return the conversation. Raises ToolError or ActionFailed."""
        if not to.startswith("agent:"):
            return await self._conversations.named(to)
        try:
            key = parse(to)
        except ValueError:
            raise ToolError(f"{to!r} is not a session key.") from None
        account = self._conversations.accounts.of_session(key)
        if account is None or not isinstance(account.channel, Channel) or not key.id:
            raise ToolError("That session is no conversation on a platform.")
        found = await self._conversations.find(account.channel, key.id)
        return replace(found, place=replace(found.place, thread=key.thread)) if key.thread else found
