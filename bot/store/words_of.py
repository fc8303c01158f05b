"""Takes the words of a person out of the transcripts of others, which stay valid for providers.

What they wrote, and all that the model did about it, becomes one fixed line. So do summaries of such a transcript, what
was overheard of them, and their words where others quote them. A line that bears an origin of theirs keeps one without
their name, because it is still not to be trusted.
"""

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from agent.fences import harmless
from agent.message import Message, Part, Provenance, Text, ToolCall, ToolResult, estimate
from bot.store import codec
from channels.message import InboundMessage
from channels.session_key import parse

DELETED = "(deleted)"
SOMEBODY = "somebody who was forgotten"
# Shorter words are not looked for elsewhere: too much would go that nobody quoted.
_SHORTEST = 6


class Theirs:
    """What transcripts hold of one person.

    own: the keys of their own sessions, whose transcripts are deleted. names: theirs, as lines show them. messages:
    what is kept of what they wrote, with the sessions.
    """

    def __init__(
        self,
        channel: str,
        sender: str,
        own: Collection[str],
        names: Collection[str],
        messages: Sequence[tuple[str, InboundMessage]],
    ) -> None:
        self._who = (channel, sender)
        self._own = frozenset(own)
        self._speaks = re.compile(rf"(?m)^\[[^\]\n]*\] (?:\"[^\"\n]*\" )?\(id {re.escape(sender)}(?:, a bot)?\)")
        self._heard = re.compile(f"{self._speaks.pattern}.*$")
        quoted = "|".join(map(re.escape, names)) or "(?!)"
        self._quoted = re.compile(rf"(?s)<(replied-to|forwarded) from=(?:{quoted})>\n.*?\n</\1>")
        self._texts = set[str]()
        for _, one in messages:
            self._look_for(one.text)
        # The turns in sessions of others that they have a part in, and these sessions.
        self.turns: list[str] = []
        self.sessions: set[str] = set()
        self._transcripts: set[str] = set()

    def take_turn(self, db: sqlite3.Connection, turn_id: str | None) -> None:
        """Note that the person has a part in a turn."""
        found = db.execute("SELECT session_key, transcript_id FROM turn WHERE turn_id=?", (turn_id,)).fetchone()
        if found and found[0] not in self._own and turn_id not in self.turns:
            self.turns.append(str(turn_id))
            self.sessions.add(found[0])
            self._transcripts.add(found[1])

    def take_told(self, db: sqlite3.Connection) -> None:
        """Note what was sent into other conversations in their sessions and turns, of which these were told."""
        self._find(db)
        found = db.execute(
            "SELECT inbox.session_key, payload, inbox.seq FROM delivery JOIN inbox ON event_key=source"
            " LEFT JOIN turn ON turn.turn_id=delivery.turn_id"
            " WHERE turn.session_key IN (SELECT value FROM json_each(?))"
            " OR delivery.turn_id IN (SELECT value FROM json_each(?))",
            (json.dumps([*self._own]), json.dumps(self.turns)),
        ).fetchall()
        for session_key, payload, seq in found:
            if session_key not in self._own and (told := codec.read_inbound(payload, seq)) is not None:
                self._look_for(told.text)
                kept = db.execute("SELECT transcript_id FROM transcript WHERE session_key=?", (session_key,))
                self._transcripts |= {transcript_id for (transcript_id,) in kept}

    def delete_words(self, db: sqlite3.Connection) -> Collection[str]:
        """Take the words out; returns the transcripts that may have been changed."""
        for transcript_id in self._transcripts:
            found = db.execute(
                "SELECT seq, kind, body, turn_id FROM entry WHERE transcript_id=?", (transcript_id,)
            ).fetchall()
            for seq, kind, body, turn_id in found:
                line = codec.MESSAGE.load(body, None)
                if line is None:
                    continue
                whole = kind == "summary" or turn_id in self.turns or self._is_copied(line)
                kept = self._cleaned(blank(line) if whole else self._without(line))
                if kept != line:
                    db.execute(
                        "UPDATE entry SET body=?, tokens=? WHERE transcript_id=? AND seq=?",
                        (codec.MESSAGE.dump(kept), estimate(kept), transcript_id, seq),
                    )
        return self._transcripts

    def _look_for(self, text: str) -> None:
        """Look for a text where others quote it."""
        self._texts |= {one for one in (harmless(text).strip(), " ".join(text.split())) if len(one) >= _SHORTEST}

    def _find(self, db: sqlite3.Connection) -> None:
        """Find the transcripts of others that show them, and their turns, by the heads and origins of lines."""
        found = db.execute(
            "SELECT session_key, transcript_id, turn_id, body FROM entry JOIN transcript USING (transcript_id)"
            " WHERE instr(body, ?1) OR EXISTS (SELECT 1 FROM json_each(?2) WHERE instr(body, 'the session ' || value))",
            (self._who[1], json.dumps([*self._own])),
        ).fetchall()
        for session_key, transcript_id, turn_id, body in found:
            line = codec.MESSAGE.load(body, None)
            if line is None or session_key in self._own or parse(session_key).channel not in ("", self._who[0]):
                continue
            said = [part.text for part in line.parts if isinstance(part, Text) and self._speaks.search(part.text)]
            named = any((one.channel, one.sender) == self._who for one in line.all_origins)
            if said or named or self._is_copied(line):
                self._transcripts.add(transcript_id)
                self.sessions.add(session_key)
            if any("<overheard>" not in text for text in said):
                self.take_turn(db, turn_id)

    def _is_copied(self, line: Message) -> bool:
        """Whether a line is a copy out of one of their sessions."""
        return any(one.what.removeprefix("the session ") in self._own for one in line.origins)

    def _without(self, line: Message) -> Message:
        """Return a line of somebody else without their words."""

        def cut(text: str) -> str:
            text = self._heard.sub(DELETED, text)
            text = self._quoted.sub(lambda found: f"<{found[1]}>\n{DELETED}\n</{found[1]}>", text)
            for words in self._texts:
                text = text.replace(words, DELETED)
            return text

        parts: list[Part] = []
        for part in line.parts:
            match part:
                case Text(text=text) | ToolResult(text=text):
                    parts.append(replace(part, text=cut(text)))
                case ToolCall(arguments=arguments):
                    parts.append(replace(part, arguments=cut(arguments)))
                case _:
                    parts.append(part)
        return replace(line, parts=tuple(parts))

    def _cleaned(self, line: Message) -> Message:
        """Return a line whose origins do not name them."""
        parts = (
            replace(part, origins=self.unnamed(part.origins, *self._who)) if isinstance(part, ToolResult) else part
            for part in line.parts
        )
        return replace(line, parts=tuple(parts), origins=self.unnamed(line.origins, *self._who))

    @staticmethod
    def unnamed(origins: Iterable[Provenance], channel: str, sender: str) -> tuple[Provenance, ...]:
        """Return origins that do not name a person."""
        gone = Provenance("person", SOMEBODY)
        return tuple(gone if (one.channel, one.sender) == (channel, sender) else one for one in origins)


def blank(line: Message) -> Message:
    """Return a line with the same calls and results, and without any words."""
    parts: list[Part] = []
    for part in line.parts:
        match part:
            case ToolCall():
                parts.append(replace(part, arguments="{}"))
            case ToolResult():
                parts.append(replace(part, text=DELETED, images=()))
            case _:
                pass
    words = (Text(DELETED),) if line.role != "tool" else ()
    origins = tuple({Provenance(one.kind, SOMEBODY): None for one in line.origins})
    return replace(line, parts=(*words, *parts), origins=origins)
