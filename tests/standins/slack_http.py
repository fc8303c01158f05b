"""HTTP mode: requests that Slack sends to the app's url, signed as "Verifying requests from Slack" has it.

Events are JSON, commands a form, interactions a form with one field `payload`. An answer that is not 2xx, or none in
three seconds of the server's time, is a failure; `X-Slack-No-Retry: 1` with it ends the retries.
"""

import asyncio
import hashlib
import hmac
import json
from urllib.parse import urlencode

import aiohttp

from tests.standins import slack_shapes as shapes
from tests.standins.slack_delivery import Delivering, Envelope
from tests.standins.slack_ledger import Json


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """`v0=` and the HMAC-SHA256 of version, timestamp and body."""
    base = f"v0:{timestamp}:".encode() + body
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


class Requests:
    """The request url of an app; a Transport of slack_delivery."""

    def __init__(self, slack: Delivering, url: str) -> None:
        self.slack = slack
        self.url = url
        self._session = aiohttp.ClientSession()
        self._posts: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        for post in list(self._posts):
            post.cancel()
        await asyncio.gather(*self._posts, return_exceptions=True)
        await self._session.close()

    async def verify(self) -> bool:
        """The challenge that Slack sends when the url is entered; whether the app answered it."""
        challenge = f"challenge-{self.slack.number()}"
        body = {"token": shapes.VERIFICATION_TOKEN, "challenge": challenge, "type": "url_verification"}
        status, _, text = await self.post(json.dumps(body).encode(), "application/json")
        if status != 200:
            return False
        return challenge in (text.strip(), _field(text, "challenge"))

    def send(self, envelope: Envelope) -> bool:
        task = asyncio.get_running_loop().create_task(self._deliver(envelope))
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)
        return True

    async def _deliver(self, envelope: Envelope) -> None:
        attempt_id = envelope.id
        headers = {}
        if envelope.attempt:
            headers = {"X-Slack-Retry-Num": str(envelope.attempt), "X-Slack-Retry-Reason": envelope.reason}
        body, kind = encoded(envelope)
        try:
            status, answered, text = await self.post(body, kind, headers)
        except aiohttp.ClientError:
            self.slack.failed(envelope, "connection_failed")
            return
        if envelope.id != attempt_id:
            return  # too late: the next attempt is under way
        if 200 <= status < 300:
            self.slack.acknowledged(envelope, _answer(answered, text))
        else:
            self.slack.failed(envelope, "http_error", final=answered.get("X-Slack-No-Retry") == "1")

    async def post(
        self,
        body: bytes,
        content_type: str,
        headers: dict[str, str] | None = None,
        *,
        secret: str | None = None,
        age: int = 0,
    ) -> tuple[int, dict[str, str], str]:
        """Send a body with its signature: status, headers and text. A wrong `secret` or an `age` in seconds forge."""
        timestamp = str(self.slack.stamp() - age)
        signed = {
            "Content-Type": content_type,
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": signature(secret or shapes.SIGNING_SECRET, timestamp, body),
            **(headers or {}),
        }
        async with self._session.post(self.url, data=body, headers=signed, allow_redirects=False) as answer:
            return answer.status, dict(answer.headers), await answer.text()


def encoded(envelope: Envelope) -> tuple[bytes, str]:
    """Body and content type of an envelope."""
    if envelope.is_event:
        return json.dumps(envelope.payload).encode(), "application/json"
    fields = envelope.payload if envelope.kind == "slash_commands" else {"payload": json.dumps(envelope.payload)}
    return urlencode(fields).encode(), "application/x-www-form-urlencoded"


def _answer(headers: dict[str, str], text: str) -> object:
    """What an app says at once, a message as JSON or as bare text."""
    if not text:
        return None
    if "json" in headers.get("Content-Type", ""):
        try:
            return json.loads(text)
        except ValueError:
            return None
    return {"text": text}


def _field(text: str, name: str) -> object:
    try:
        body: Json = json.loads(text)
    except ValueError:
        return None
    return body.get(name) if isinstance(body, dict) else None
