"""Files that came with messages, from Slack's own hosts alone: the token goes nowhere else."""

from collections.abc import AsyncIterator
from urllib.parse import urljoin, urlsplit

from channels.base import NotDownloaded
from channels.failures import ApiError, Trouble
from channels.message import Attachment
from channels.slack.api import Api
from channels.slack.settings import SlackAccount

_HOST = "slack.com"
_REDIRECTS = 3
_PIECE = 65_536


async def pieces(api: Api, section: SlackAccount, attachment: Attachment) -> AsyncIterator[bytes]:
    """The content, piece by piece; an address that is not good any more is asked for once. Raises ApiError,
    NotDownloaded."""
    file_id, _, url = attachment.ref.partition(" ")
    headers = {"Authorization": f"Bearer {section.secret('bot_token')}"}
    for renewed in (False, True):
        if renewed or not url:
            file = (await api.call("files.info", {"file": file_id}))["file"]
            url = file.get("url_private_download") or file.get("url_private") or ""
        for _ in range(_REDIRECTS):
            if not is_slack(url, section.base_url):
                raise NotDownloaded(f"the file is not on Slack's own hosts but on {urlsplit(url).hostname or 'none'}")
            async with api.request("GET", url, headers=headers, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("Location", ""))
                    continue
                # Who may not read it gets a page to sign in, as a success; files come as attachments.
                shown = "attachment" not in response.headers.get("Content-Disposition", "")
                if response.status in (401, 403, 404, 410) or (response.content_type == "text/html" and shown):
                    break
                if response.status != 200:
                    raise ApiError(Trouble.FAILED, f"status {response.status}")
                async for piece in response.content.iter_chunked(_PIECE):
                    yield piece
                return
    raise NotDownloaded("Slack does not hand out the file: the app needs the scope files:read and access to it")


def is_slack(url: str, base_url: str) -> bool:
    """Whether it is an address of Slack, or of the server that has the token anyway."""
    parts, base = urlsplit(url), urlsplit(base_url)
    host = parts.hostname or ""
    own = parts.scheme == "https" and (host == _HOST or host.endswith(f".{_HOST}"))
    return own or (parts.scheme, parts.netloc) == (base.scheme, base.netloc)
