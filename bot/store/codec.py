"""Stored JSON to values and back, by pydantic in one place. Stored once, never rewritten: fields are only added."""

import structlog
from pydantic import TypeAdapter, ValidationError

from agent.message import Message, Usage
from channels.message import InboundMessage
from channels.outgoing import Button, OutgoingFile

log = structlog.get_logger()

_inbound: TypeAdapter[InboundMessage] = TypeAdapter(InboundMessage)
_message: TypeAdapter[Message] = TypeAdapter(Message)
_usage: TypeAdapter[Usage] = TypeAdapter(Usage)
_buttons: TypeAdapter[tuple[Button, ...]] = TypeAdapter(tuple[Button, ...])
_file: TypeAdapter[OutgoingFile] = TypeAdapter(OutgoingFile)


def dump_inbound(message: InboundMessage) -> str:
    """An inbound message as JSON."""
    return _inbound.dump_json(message).decode()


def load_inbound(text: str) -> InboundMessage:
    """Raises pydantic.ValidationError when the text is not one."""
    return _inbound.validate_json(text)


def read_inbound(text: str, seq: int) -> InboundMessage | None:
    """An inbound message; None, and a line in the log, where what is stored at `seq` is damaged."""
    try:
        return load_inbound(text)
    except ValidationError:
        log.error("an accepted message cannot be read", seq=seq)
        return None


def dump_message(message: Message) -> str:
    """A transcript message as JSON."""
    return _message.dump_json(message).decode()


def load_message(text: str) -> Message:
    """Raises pydantic.ValidationError when the text is not one."""
    return _message.validate_json(text)


def dump_usage(usage: Usage) -> str:
    """Token counts as JSON."""
    return _usage.dump_json(usage).decode()


def load_usage(text: str | None) -> Usage:
    """Token counts; none, or damaged ones, are zero."""
    try:
        return _usage.validate_json(text) if text else Usage()
    except ValidationError:
        return Usage()


def dump_buttons(buttons: tuple[Button, ...]) -> str | None:
    """The buttons of a message as JSON; None where there are none."""
    return _buttons.dump_json(buttons).decode() if buttons else None


def load_buttons(text: str | None) -> tuple[Button, ...]:
    """The buttons of a message; damaged ones are none."""
    try:
        return _buttons.validate_json(text) if text else ()
    except ValidationError:
        return ()


def dump_file(file: OutgoingFile | None) -> str | None:
    """A file to be sent as JSON; None where there is none."""
    return _file.dump_json(file).decode() if file else None


def load_file(text: str | None) -> OutgoingFile | None:
    """A file to be sent; a damaged one is none."""
    try:
        return _file.validate_json(text) if text else None
    except ValidationError:
        return None
