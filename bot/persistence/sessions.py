"""Values of the store about sessions and their transcripts, as people and programs see them. Times in milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.message import EntryKind, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptView:
    """A transcript of a session, as lists show it."""

    session: str
    transcript: str
    # The number of messages of people and answers in it.
    messages: int
    created_at: int
    # Whether the session goes on with it.
    current: bool
    # The beginning of its first message.
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a transcript. Damaged ones are not shown."""

    seq: int
    kind: EntryKind
    message: Message
    # When its turn was accepted; 0 if that is not known.
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A line in which words were found."""

    session: str
    transcript: str
    seq: int
    # user or assistant.
    role: str
    at: int
    # The words around the first that was found.
    text: str


class NoSuchTranscript(LookupError):
    """No transcript, or more than one, is named so; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A transcript from a file: its lines are valid for every provider and are not trusted."""

    # The same for the same content in the same session, so that a file adds nothing when it is imported again.
    transcript: str
    session: str
    created_at: int
    lines: Sequence[tuple[EntryKind, Message]]
    # The number of lines of the file that could not be read.
    skipped: int
