"""Reads of a picture what providers refuse it for: its type, its pixels, and whether its end is there."""

import base64
import struct
from collections.abc import Iterator

from agent.message import Image

# The images of a request, and the bytes of one: 5 MB as base64 is what the strictest provider takes.
MAX_IMAGES, MAX_IMAGE_BYTES = 20, 3_500_000
# Characters of base64 in which the size stands, also behind a preview; a multiple of four.
_HEAD = 256 * 1024
_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def image_type(content: bytes) -> str:
    """Return the MIME type of an image that models take, from its first bytes; empty for anything else."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in _TYPES.items() if content.startswith(start)), "")


def pixels(content: bytes) -> tuple[int, int]:
    """Return the width and height of a picture from its beginning; (0, 0) where they are not found there."""
    try:
        match image_type(content):
            case "image/png":
                width, height = struct.unpack(">II", content[16:24])
            case "image/gif":
                width, height = struct.unpack("<HH", content[6:10])
            case "image/jpeg":
                height, width = next(_frames(content))
            case "image/webp":
                width, height = _webp(content)
            case _:
                return 0, 0
    except (struct.error, StopIteration, IndexError):
        return 0, 0
    return width, height


def pixels_of(image: Image) -> tuple[int, int]:
    """Return the width and height of an image in base64, as `pixels` does."""
    return pixels(_decoded(image.data[:_HEAD]))


def is_whole(image: Image) -> bool:
    """Whether an image in base64 is of the type that it is sent as, has a size, and has its end."""
    content = _decoded(image.data)
    if not content or image_type(content) != image.mime or 0 in pixels(content):
        return False
    match image.mime:
        case "image/png":
            return b"IEND" in content[-64:] and b"IDAT" in content
        case "image/jpeg":
            return b"\xff\xd9" in content[-1024:]
        case "image/gif":
            return b"\x3b" in content[-8:]
    return len(content) >= int.from_bytes(content[4:8], "little")


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return b""


def _frames(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield the height and width of each frame header of a JPEG."""
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        kind = content[at + 1]
        if kind == 0xFF or kind == 0x01 or 0xD0 <= kind <= 0xD8:  # without a length
            at += 1 if kind == 0xFF else 2
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            yield struct.unpack(">HH", content[at + 5 : at + 9])
        at += 2 + max(struct.unpack(">H", content[at + 2 : at + 4])[0], 2)


def _webp(content: bytes) -> tuple[int, int]:
    match content[12:16]:
        case b"VP8X":
            return int.from_bytes(content[24:27], "little") + 1, int.from_bytes(content[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(content[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", content[26:30])
    return width & 0x3FFF, height & 0x3FFF
