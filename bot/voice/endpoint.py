"""One call of an OpenAI-compatible endpoint for sound, bounded in time and size."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

import structlog

from channels.section import Secret

if TYPE_CHECKING:  # it takes a tenth of a second to load, which only whoever has configured it waits for
    import httpx2

log = structlog.get_logger()


class VoiceError(Exception):
    """Something could not be written down or said aloud; says why in a few words for people."""


async def post(url: str, key: Secret, most: int, seconds: float, **request: Any) -> bytes:
    """Post a request and return the body of its answer. Raises VoiceError.

    most: bytes of an answer. request: its content, as httpx2 takes it.
    """
    httpx: Any = await asyncio.to_thread(import_module, "httpx2")
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    body = bytearray()
    try:
        async with asyncio.timeout(seconds), httpx.AsyncClient(timeout=seconds) as client:
            answer: httpx2.Response
            async with client.stream("POST", url, headers=headers, **request) as answer:
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > most:
                        raise VoiceError("its answer is too large")
    except TimeoutError:
        raise VoiceError(f"it took more than {seconds:g} seconds") from None
    except httpx.HTTPError as error:
        raise VoiceError(f"the endpoint cannot be reached ({type(error).__name__})") from error
    if answer.status_code != 200:
        log.warning("an endpoint for sound refused", url=url, status=answer.status_code, said=bytes(body[:500]))
        raise VoiceError(f"the endpoint answered with status {answer.status_code}")
    return bytes(body)
