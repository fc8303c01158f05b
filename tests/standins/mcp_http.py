"""A strict MCP server over streamable HTTP (2025-06-18), written from the published protocol and on no library.

Its rules for messages are those of `mcp_stdio`. With `login` it wants a token, and is its own authorization server:
metadata, registration, authorization with PKCE, tokens that can be renewed.
"""

import asyncio
import base64
import hashlib
import json
import secrets
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.standins.mcp_stdio import Session

Json = dict[str, Any]
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Asked:
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def tool(self) -> str:
        """The tool that is called; empty for other requests."""
        message = json.loads(self.body) if self.body.startswith(b"{") else {}
        return str(message["params"]["name"]) if message.get("method") == "tools/call" else ""


@dataclass
class McpHttp(AbstractAsyncContextManager["McpHttp"]):
    """The server. plan: as of `mcp_stdio`. events: whether it answers with event streams. seen: all requests.

    moved: an address to which all requests are sent on. hangs: a method that is not answered, or a tool whose calls
    are not.
    """

    plan: Path
    events: bool = False
    login: bool = False
    moved: str = ""
    hangs: str = ""
    seen: list[Asked] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    sessions: dict[str, Session] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    renewals: set[str] = field(default_factory=set)
    clients: dict[str, Json] = field(default_factory=dict)
    codes: dict[str, Json] = field(default_factory=dict)
    port: int = 0

    async def __aenter__(self) -> "McpHttp":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    @property
    def at(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address of the MCP server."""
        return f"{self.at}/mcp"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            method, target, _ = first.split(" ")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            parts = urlsplit(target)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            asked = Asked(method, parts.path, query, headers, body)
            self.seen.append(asked)
            if self.hangs and self.hangs in (method, asked.tool):
                await reader.read()
                return
            status, more, answer = await self.answer(asked)
            more = {"Content-Length": str(len(answer)), "Connection": "close", **more}
            lines = [f"HTTP/1.1 {status} x", *(f"{name}: {value}" for name, value in more.items())]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, asked: Asked) -> Answer:
        """What a request is answered with."""
        if self.moved:
            return 307, {"Location": self.moved}, b""
        if asked.path != "/mcp":
            return self._authorize(asked) if self.login else _plain(404, "nothing")
        if self.login and asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            where = f'Bearer resource_metadata="{self.at}/.well-known/oauth-protected-resource"'
            return 401, {"WWW-Authenticate": where}, b""
        session = self.sessions.get(asked.headers.get("mcp-session-id", ""))
        if asked.method == "DELETE":
            ended = self.sessions.pop(asked.headers.get("mcp-session-id", ""), None)
            return _plain(200 if ended else 404, "")
        if asked.method != "POST":
            return _plain(405, "no stream of its own")
        return await self._post(asked, session)

    async def _post(self, asked: Asked, session: Session | None) -> Answer:
        accepts = asked.headers.get("accept", "")
        if "application/json" not in accepts or "text/event-stream" not in accepts:
            return self._refuse(406, "both forms of an answer are accepted")
        if asked.headers.get("content-type", "").partition(";")[0] != "application/json":
            return self._refuse(415, "the body is JSON")
        message = json.loads(asked.body)
        more = {}
        if message.get("method") == "initialize":
            session = Session(self.plan)
            more["Mcp-Session-Id"] = secrets.token_hex(8)
            self.sessions[more["Mcp-Session-Id"]] = session
        elif message.get("method") == "server/discover":
            return _plain(400, "Bad Request: no session")  # as servers of this age answer
        elif "mcp-session-id" not in asked.headers:
            return self._refuse(400, "a session is named")
        elif session is None:
            return _plain(404, "no such session")
        elif asked.headers.get("mcp-protocol-version") not in ("2025-06-18", "2025-11-25", "2025-03-26"):
            return self._refuse(400, "the version is named")
        answer = await asyncio.to_thread(session.take, message)
        if answer is None:
            return 202, more, b""
        data = json.dumps(answer).encode()
        if self.events:
            return 200, {**more, "Content-Type": "text/event-stream"}, b"event: message\ndata: " + data + b"\n\n"
        return 200, {**more, "Content-Type": "application/json"}, data

    def _refuse(self, status: int, rule: str) -> Answer:
        self.broken.append(rule)
        return _plain(status, rule)

    def _authorize(self, asked: Asked) -> Answer:
        form = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
        if asked.path.startswith("/.well-known/oauth-protected-resource"):
            return _json({"resource": self.url, "authorization_servers": [self.at]})
        if asked.path.startswith("/.well-known/oauth-authorization-server"):
            return _json(
                {
                    "issuer": self.at,
                    "authorization_endpoint": f"{self.at}/authorize",
                    "token_endpoint": f"{self.at}/token",
                    "registration_endpoint": f"{self.at}/register",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                }
            )
        if asked.path == "/register":
            client = {**json.loads(asked.body), "client_id": secrets.token_hex(4), "token_endpoint_auth_method": "none"}
            self.clients[client["client_id"]] = client
            return _json(client, 201)
        if asked.path == "/authorize":
            known = asked.query["redirect_uri"] in self.clients[asked.query["client_id"]]["redirect_uris"]
            if not known or asked.query["code_challenge_method"] != "S256":
                return self._refuse(400, "the callback is the one that was registered")
            code = secrets.token_hex(8)
            self.codes[code] = dict(asked.query)
            back = urlencode({"code": code, "state": asked.query["state"]})
            return 302, {"Location": f"{asked.query['redirect_uri']}?{back}"}, b""
        if asked.path == "/token":
            return self._token(form)
        return _plain(404, "nothing")

    def _token(self, form: dict[str, str]) -> Answer:
        if form.get("grant_type") == "refresh_token":
            if form.get("refresh_token") not in self.renewals:
                return _json({"error": "invalid_grant"}, 400)
        else:
            given = self.codes.pop(form.get("code", ""), None)
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if given is None or given["code_challenge"] != challenge or given["redirect_uri"] != form["redirect_uri"]:
                return self._refuse(400, "a code is used once, with its verifier and its callback")
        token, renewal = secrets.token_hex(16), secrets.token_hex(16)
        self.tokens.add(token)
        self.renewals.add(renewal)
        return _json({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": renewal})


def _plain(status: int, text: str) -> Answer:
    return status, {"Content-Type": "text/plain"}, text.encode()


def _json(value: Json, status: int = 200) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()
