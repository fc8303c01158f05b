"""The user message of a transcript, made once from what was accepted: when, by whom, and what came with it.

The moment stands in the message and not in the system prompt, so that the model knows the time and the prefix of
consecutive requests stays stable (promise 7).
"""

from collections.abc import Callable

from agent.message import Message, Text
from channels.message import Attachment, ChatKind, InboundMessage


def composer(stamp: Callable[[int], str]) -> Callable[[InboundMessage, int], Message]:
    """Makes the function that the store calls when a message becomes part of a transcript.

    stamp: a moment (milliseconds) as local weekday, date, time and zone.
    """

    def compose(message: InboundMessage, accepted_at: int) -> Message:
        origin = message.origin
        head = f"[{stamp(message.sent_at or accepted_at)}]"
        if origin.place.kind in (ChatKind.GROUP, ChatKind.CHANNEL) and origin.sender_name:
            head = f"{head} {' '.join(origin.sender_name.split())}:"
        lines = [head, *(_attached(attachment) for attachment in message.attachments)]
        if message.text:
            lines.append(message.text)
        return Message("user", (Text("\n".join(lines)),))

    return compose


def _attached(attachment: Attachment) -> str:
    """A file that came along; its content is not read in this version, and the model is told so."""
    name = f" {attachment.name}" if attachment.name else ""
    return f"(attached: {attachment.kind}{name}; its content cannot be read here)"
