"""The search index: the words of all transcripts, in a file of its own beside the store (`search.db`).

It is filled behind the store's back in small batches, so that no transaction of a run waits for it. It holds how far
it has read each transcript, in the transaction that stores the words, so it goes on where a crash has cut it. It can
always be made anew: a damaged file is deleted, and so is one that knows words of somebody who is to be forgotten.

SQLite's tokenizers take a run of Chinese for one word, or find nothing shorter than three characters. So the words are
cut here: what is written without spaces becomes overlapping pairs of characters.
"""

import asyncio
import contextlib
import os
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from bot.persistence.errors import StoreUnavailable
from bot.persistence.sessions import Hit
from bot.store import codec
from bot.store.database import FILE as STORE
from bot.store.database import forgiving

T = TypeVar("T")

FILE = "search.db"
# The most lines that one batch reads.
BATCH = 200
# The characters that are shown before and behind what was found.
_AROUND = 60
_LONGEST_QUERY = 1000
_VERSION = 1
_SCHEMA = f"""
BEGIN;
CREATE TABLE line (                         -- a line of a transcript whose words are known
  line_id INTEGER PRIMARY KEY, transcript_id TEXT NOT NULL, seq INTEGER NOT NULL, UNIQUE (transcript_id, seq)
) STRICT;
CREATE TABLE position (                     -- how far a transcript was read
  transcript_id TEXT PRIMARY KEY, upto INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(text, tokenize='unicode61 remove_diacritics 2');
PRAGMA user_version={_VERSION};
COMMIT;
"""
_SPOKEN = "kind IN ('user','assistant','assistant_cut')"
# Runs of scripts that are written without spaces, or that glue endings to words: Thai, Lao, Burmese, Khmer, Hangul,
# Japanese, Chinese.
_RUNS = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af]+)"
)


class SearchIndex:
    """The index of one state directory. Its methods raise StoreUnavailable while it cannot be read or written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = asyncio.Lock()

    async def fill(self) -> bool:
        """Read a batch of new lines, and forget transcripts that are gone; returns whether there may be more."""
        return await self._do(_fill)

    async def find(self, words: str, limit: int) -> Sequence[Hit]:
        """Return the newest lines in which all of these words stand, as far as the index was filled."""
        return await self._do(lambda db: _find(db, words, limit))

    async def clear(self) -> None:
        """Delete the index; it is filled anew."""
        async with self._lock:
            await asyncio.to_thread(self._remove)

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do some work with the index in a thread, which has ended when this returns or is cancelled."""
        async with self._lock:
            working = asyncio.ensure_future(asyncio.to_thread(self._work, work))
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                await asyncio.wait([working])
                raise

    def _work(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            try:
                return self._with(work)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):  # locked, or no room
                    raise
                self._remove()
                return self._with(work)
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(f"the search index cannot be used: {error}") from error

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T:
        path = self._directory / FILE
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        with contextlib.closing(sqlite3.connect(path.resolve().as_uri(), uri=True, isolation_level=None)) as db:
            db.text_factory = forgiving
            db.execute("PRAGMA synchronous=NORMAL")  # what a power failure takes is read again
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError(f"its version is {version}")
            if version == 0:
                db.executescript(_SCHEMA)
            db.execute("ATTACH ? AS store", (f"{(self._directory / STORE).resolve().as_uri()}?mode=ro",))
            return work(db)

    def _remove(self) -> None:
        for suffix in ("", "-journal"):
            (self._directory / f"{FILE}{suffix}").unlink(missing_ok=True)


def _fill(db: sqlite3.Connection) -> bool:
    db.execute("BEGIN")  # an immediate one would lock the store as well
    try:
        read = _forget_gone(db) + _read_new(db)
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    return read >= BATCH


def _forget_gone(db: sqlite3.Connection) -> int:
    """Forget lines of transcripts that have none any more; returns how many."""
    gone = db.execute(
        "SELECT line_id, transcript_id FROM position JOIN line USING (transcript_id)"
        " WHERE NOT EXISTS (SELECT 1 FROM store.entry WHERE entry.transcript_id=position.transcript_id) LIMIT ?",
        (BATCH,),
    ).fetchall()
    db.executemany("DELETE FROM words WHERE rowid=?", [(line_id,) for line_id, _ in gone])
    db.executemany("DELETE FROM line WHERE line_id=?", [(line_id,) for line_id, _ in gone])
    db.execute(
        "DELETE FROM position WHERE NOT EXISTS (SELECT 1 FROM line WHERE line.transcript_id=position.transcript_id)"
        " AND NOT EXISTS (SELECT 1 FROM store.entry WHERE entry.transcript_id=position.transcript_id)"
    )
    return len(gone)


def _read_new(db: sqlite3.Connection) -> int:
    """Read lines that are not known yet, the oldest transcripts first; returns how many were read."""
    behind = db.execute(
        "SELECT transcript_id, coalesce(upto, 0) AS known FROM store.transcript LEFT JOIN position"
        " USING (transcript_id) WHERE (SELECT max(seq) FROM store.entry"
        " WHERE entry.transcript_id=transcript.transcript_id) > known ORDER BY created_at LIMIT ?",
        (BATCH,),
    ).fetchall()
    left = BATCH
    for transcript_id, known in behind:
        found = db.execute(
            f"SELECT seq, {_SPOKEN}, body FROM store.entry WHERE transcript_id=? AND seq > ? ORDER BY seq LIMIT ?",
            (transcript_id, known, left),
        ).fetchall()
        for seq, spoken, body in found:
            message = codec.MESSAGE.load(body, None) if spoken else None
            if message is not None and (text := indexed(message.text)):
                add = "INSERT INTO line (transcript_id, seq) VALUES (?,?) ON CONFLICT DO NOTHING RETURNING line_id"
                if (made := db.execute(add, (transcript_id, seq)).fetchone()) is not None:
                    db.execute("INSERT INTO words (rowid, text) VALUES (?,?)", (made[0], text))
        db.execute("INSERT OR REPLACE INTO position VALUES (?,?)", (transcript_id, found[-1][0]))
        left -= len(found)
        if left <= 0:
            break
    return BATCH - left


def _find(db: sqlite3.Connection, words: str, limit: int) -> Sequence[Hit]:
    wanted = query(words)
    if not wanted:
        return []
    found = db.execute(
        "SELECT session_key, line.transcript_id, line.seq, kind, body, coalesce((SELECT turn.created_at FROM store.turn"
        " WHERE turn.turn_id=entry.turn_id), transcript.created_at) FROM words JOIN line ON line_id=words.rowid"
        " JOIN store.entry ON entry.transcript_id=line.transcript_id AND entry.seq=line.seq AND hidden=0"
        " JOIN store.transcript ON transcript.transcript_id=line.transcript_id"
        " WHERE words MATCH ? ORDER BY line_id DESC LIMIT ?",
        (wanted, limit),
    ).fetchall()
    hits = []
    for session, transcript, seq, kind, body, at in found:
        if (message := codec.MESSAGE.load(body, None)) is not None:
            role, text = "user" if kind == "user" else "assistant", _around(message.text, words)
            hits.append(Hit(session=session, transcript=transcript, seq=seq, role=role, at=at, text=text))
    return hits


def indexed(text: str) -> str:
    """Return the words of a text as the index holds them."""
    return " ".join(piece for run, chunk in chunks(text) for piece in ((*pairs(chunk), chunk[-1]) if run else (chunk,)))


def query(typed: str) -> str:
    """Return the query for all words that somebody typed, of which nothing is taken for syntax; empty without words."""
    wanted = []
    for run, chunk in chunks(typed[:_LONGEST_QUERY]):
        if run and len(chunk) > 1:
            wanted.append(f'"{" ".join(pairs(chunk))}"')
        else:  # the beginning of a word, or of a pair
            wanted.append('"{}"*'.format(chunk.replace('"', '""')))
    return " ".join(wanted)


def chunks(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the pieces of a text without what is no letter or number, and whether each is written without spaces."""
    for word in unicodedata.normalize("NFKC", text).replace("\0", " ").casefold().split():
        for number, chunk in enumerate(_RUNS.split(word)):
            run = number % 2 == 1
            kept = "".join(filter(str.isalnum, chunk)) if run else chunk
            if any(map(str.isalnum, kept)):
                yield run, kept


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of characters of a run."""
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _around(text: str, words: str) -> str:
    """Return the part of a text, on one line, in which the first of these words stands."""
    line = " ".join(text.split())
    places = (line.casefold().find(word.casefold()) for word in words.split())
    at = next((place for place in places if place >= 0), 0)
    begin, end = max(0, at - _AROUND), at + 2 * _AROUND
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
