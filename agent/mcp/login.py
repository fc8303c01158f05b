"""OAuth for servers that speak HTTP: tokens in a file of this user alone, and the login of `hark mcp login`."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from mcp.shared.auth_utils import calculate_token_expiry
from pydantic import AnyUrl, BaseModel

from agent.errors import ToolError
from agent.mcp.settings import Settings

_NOWHERE = "http://127.0.0.1/callback"
_LOGIN_SECONDS = 600.0
_LONGEST_REQUEST = 16 * 1024


class _Kept(BaseModel):
    """The content of the file."""

    tokens: OAuthToken | None = None
    # When the token is over, in seconds since the epoch.
    until: float | None = None
    client: OAuthClientInformationFull | None = None
    # Where tokens are renewed.
    metadata: OAuthMetadata | None = None


class Tokens:
    """What a login gave, in a file. context: of the login that uses it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.context: OAuthContext | None = None

    def read(self) -> _Kept:
        """Return what the file has."""
        try:
            return _Kept.model_validate_json(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            return _Kept()

    def _write(self, **changes: object) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._path.with_suffix(".new")
        beside.unlink(missing_ok=True)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.read().model_copy(update=changes).model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)

    async def get_tokens(self) -> OAuthToken | None:
        """See TokenStorage."""
        return self.read().tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """See TokenStorage."""
        until = calculate_token_expiry(tokens.expires_in)
        self._write(tokens=tokens, until=until, metadata=self.context.oauth_metadata if self.context else None)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """See TokenStorage."""
        return self.read().client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """See TokenStorage."""
        self._write(client=client_info)

    def forget(self) -> None:
        """Forget a former login."""
        self._path.unlink(missing_ok=True)


class _Provider(OAuthClientProvider):
    """Also knows after a restart when a token is over and where it is renewed, which the package forgets."""

    def __init__(
        self,
        settings: Settings,
        callback: str,
        redirect: Callable[[str], Awaitable[None]],
        answered: Callable[[], Awaitable[AuthorizationCodeResult]],
    ) -> None:
        self._tokens = Tokens(settings.tokens)
        metadata = OAuthClientMetadata(
            client_name="Hark",
            redirect_uris=[AnyUrl(callback)],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        )
        super().__init__(settings.url, metadata, self._tokens, redirect, answered)
        self._tokens.context = self.context

    async def _initialize(self) -> None:
        await super()._initialize()
        kept = self._tokens.read()
        self.context.token_expiry_time, self.context.oauth_metadata = kept.until, kept.metadata


def auth(settings: Settings) -> httpx2.Auth | None:
    """Return what adds the tokens of a login to requests and renews them; None where nobody has logged in."""
    if not settings.tokens.exists():
        return None

    async def refuse(address: str) -> None:
        raise ToolError(f"its login is over; an owner renews it with `hark mcp login {settings.name}`.")

    async def none() -> AuthorizationCodeResult:
        raise AssertionError("nobody was sent anywhere")

    return _Provider(settings, _NOWHERE, refuse, none)


async def login(settings: Settings, show: Callable[[str], None]) -> None:
    """Log in to a server: show an address to open in a browser, and wait for what comes back to this machine.

    Raises ToolError, TimeoutError, or what the package raises.
    """
    came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline())[:_LONGEST_REQUEST].decode("latin-1").split(" ")
        found = {name: values[0] for name, values in parse_qs(urlsplit(line[1] if len(line) > 1 else "").query).items()}
        is_it = line[0] == "GET" and ("code" in found or "error" in found)
        said = "Done. You can close this page." if is_it else "Nothing is here."
        status = "200 OK" if is_it else "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{said}".encode())
        await writer.drain()
        writer.close()
        if is_it and not came.done():
            if "code" in found:
                came.set_result(AuthorizationCodeResult.model_validate(found))
            else:
                came.set_exception(ToolError(f"The login was refused: {found['error']}."))

    async def redirect(address: str) -> None:
        show(address)

    async def callback() -> AuthorizationCodeResult:
        async with asyncio.timeout(_LOGIN_SECONDS):
            return await came

    server = await asyncio.start_server(take, "127.0.0.1", 0, limit=_LONGEST_REQUEST)
    async with server:
        port = server.sockets[0].getsockname()[1]
        tokens = Tokens(settings.tokens)
        tokens.forget()
        provider = _Provider(settings, f"http://127.0.0.1:{port}/callback", redirect, callback)
        limits = httpx2.Timeout(30, read=_LOGIN_SECONDS)
        async with (
            httpx2.AsyncClient(auth=provider, headers=dict(settings.headers), timeout=limits) as http,
            Client(streamable_http_client(settings.url, http_client=http), cache=None),
        ):
            pass
    if await tokens.get_tokens() is None:
        raise ToolError("The server asked for no login.")
