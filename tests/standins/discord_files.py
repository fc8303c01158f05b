"""Attachments of the Discord stand-in: uploads, and downloads by signed links that expire.

The content delivery network is a host of its own, so it has a port of its own. A link carries when it was made and
when it ends (`is`, `ex`, hexadecimal Unix times) and a signature over both and the path (`hm`).
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

from aiohttp import web

from tests.standins.discord_ledger import Json

LIFETIME = 24 * 3600
KEY = b"stand-in"


@dataclass(frozen=True, slots=True)
class File:
    """A file to attach. `more` goes into the attachment (duration_secs, waveform, width, height, description)."""

    filename: str
    data: bytes
    content_type: str = "application/octet-stream"
    more: tuple[tuple[str, object], ...] = ()


class Files:
    """What was uploaded. `base` is set when the port is known; `downloads` are the paths asked for, with answers."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self.wall = wall
        self.base = ""
        self.downloads: list[tuple[str, int]] = []
        self._data: dict[str, File] = {}
        self.lifetime = LIFETIME

    def keep(self, file: File, channel_id: str, attachment_id: str) -> Json:
        """Store a file; returns its attachment without links."""
        name = file.filename.replace(" ", "_")
        self._data[f"/attachments/{channel_id}/{attachment_id}/{name}"] = file
        return {
            "id": attachment_id,
            "filename": name,
            "size": len(file.data),
            "content_type": file.content_type,
            "content_scan_version": 0,
            **dict(file.more),
        }

    def links(self, attachment: Json, channel_id: str) -> Json:
        """The fields of an attachment that hold fresh links."""
        path = f"/attachments/{channel_id}/{attachment['id']}/{attachment['filename']}"
        return {"url": self.sign(path), "proxy_url": self.sign(path)}

    def sign(self, path: str) -> str:
        made = int(self.wall())
        ends = made + self.lifetime
        return f"{self.base}{quote(path)}?ex={ends:x}&is={made:x}&hm={_signature(path, ends, made)}&"

    def refresh(self, url: str) -> str | None:
        """A fresh link for an old one, of which only the path counts; None for what is no link of ours."""
        path = urlsplit(url).path
        return self.sign(path) if url.startswith(self.base) and path in self._data else None

    async def serve(self, request: web.Request) -> web.Response:
        """A download: 404 with a sentence when the link has ended or was changed, as the real one answers."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(request.path_qs).query).items()}
        file = self._data.get(request.path)
        status = 200 if file is not None and self._valid(request.path, given) else 404
        self.downloads.append((request.path_qs, status))
        if file is None or status == 404:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(body=file.data, headers={"Content-Type": file.content_type})

    def _valid(self, path: str, given: dict[str, str]) -> bool:
        try:
            ends, made = int(given["ex"], 16), int(given["is"], 16)
        except (KeyError, ValueError):
            return False
        return self.wall() < ends and hmac.compare_digest(given.get("hm", ""), _signature(path, ends, made))


def _signature(path: str, ends: int, made: int) -> str:
    return hmac.new(KEY, f"{path}?{ends}&{made}".encode(), hashlib.sha256).hexdigest()
