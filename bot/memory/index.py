"""The index over the memory of one room, in a file of its own in the state directory (`memory-<hash>.db`).

No search of one room can meet words of another. Before each search the files are looked at, and what has changed is
read again, so that nothing that is found is outdated. The index can always be made anew: a damaged file is deleted.
All methods block.
"""

import contextlib
import hashlib
import heapq
import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent.memory.base import ENDING, FILE, FOLDER, MemoryUnavailable
from agent.tools.lineage import FileState
from agent.tools.workspace import Workspace, WorkspaceError
from bot.memory import terms
from bot.memory.pieces import Piece, pieces
from bot.store.database import forgiving

T = TypeVar("T")
# How files look, by their paths; see `_listed`.
_Looks = Mapping[str, tuple[int, ...] | None]

_VERSION = 2
_SCHEMA = f"""
BEGIN;
CREATE TABLE file (                         -- a file whose pieces are known
  file_id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
  sign TEXT NOT NULL,                       -- what its entry in the folder said; empty: look into it again
  digest TEXT NOT NULL, changed INTEGER NOT NULL
) STRICT;
CREATE TABLE piece (
  piece_id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL REFERENCES file, first INTEGER NOT NULL, last INTEGER NOT NULL,
  above TEXT NOT NULL, text TEXT NOT NULL, digest TEXT NOT NULL
) STRICT;
CREATE INDEX piece_of_file ON piece (file_id);
CREATE INDEX piece_by_digest ON piece (digest);
CREATE TABLE vector (                       -- of the words of pieces, by the model that has made it
  digest TEXT NOT NULL, model TEXT NOT NULL, bits BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (digest, model)
) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(inside, above,
  tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co So'");
CREATE VIRTUAL TABLE known USING fts5vocab(words, row);
PRAGMA user_version={_VERSION};
COMMIT;
"""
# Nanoseconds within which a file may change again without looking different.
_UNSETTLED = 50_000_000
# Seconds for which a search waits at most for another one that works with the same index.
_PATIENCE = 2.0
# Pieces that are committed together.
_AT_ONCE = 500
# The most places of words that are read to find candidates, and the most candidates.
_PLACES, CANDIDATES = 5_000, 50
# The most words that are looked for together.
_TOGETHER = 5


@dataclass(frozen=True, slots=True)
class Row:
    """A piece of the memory as the index holds it."""

    path: str
    first: int
    last: int
    above: str
    text: str
    # The forms of the words in the text, and of those above it and in the name of the file.
    words: Sequence[str]
    context: Sequence[str]
    # What the file held.
    state: FileState


@dataclass(frozen=True, slots=True)
class Found:
    """The pieces that may answer a question, and in how many pieces of all there are each word stands."""

    # The words of the question, see `terms.asked`.
    asked: Sequence[tuple[str, str]]
    total: int
    # Whether there is any file in the folder of the memory, even an empty one.
    has_days: bool
    counts: dict[str, int]
    rows: dict[int, Row]


class Index:
    """The index of one room; see the module."""

    def __init__(self, state: Path, room: Workspace) -> None:
        """state: the state directory."""
        name = hashlib.sha256(room.whole(()).encode()).hexdigest()[:32]
        self._path = state / f"memory-{name}.db"
        self.room = room
        self._lock = threading.Lock()
        # How the files looked when all of them had been read.
        self._seen: _Looks = {}
        self._closed = False

    def find(self, question: str, near: Callable[[sqlite3.Connection], Sequence[int]] | None = None) -> Found:
        """Return what may answer a question, from the files as they are. near: returns further candidates.

        Raises MemoryUnavailable.
        """
        return self._do(lambda db: _found(db, self.room, terms.asked(question), near(db) if near else ()))

    def refresh(self) -> None:
        """Read what has changed, however long another one works with the index. Raises MemoryUnavailable."""
        self._do(lambda db: None, patience=-1)

    def without_vector(self, model: str, since: int, most: int) -> Sequence[tuple[int, str, str]]:
        """Return the id, the digest and the words of pieces behind one of which a model has made no vector yet.

        Where there are none, the vectors of other models and of pieces that are gone are forgotten.
        """

        def work(db: sqlite3.Connection) -> Sequence[tuple[int, str, str]]:
            found = db.execute(
                "SELECT piece_id, digest, above || ' ' || text FROM piece WHERE piece_id>? AND NOT EXISTS"
                " (SELECT 1 FROM vector WHERE vector.digest=piece.digest AND model=?) ORDER BY piece_id LIMIT ?",
                (since, model, most),
            ).fetchall()
            if not found:
                db.execute("DELETE FROM vector WHERE model<>? OR digest NOT IN (SELECT digest FROM piece)", (model,))
            return found

        return self._do(work)

    def keep(self, model: str, vectors: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Keep vectors: the digest of a piece, the signs of the numbers, and the numbers."""

        def work(db: sqlite3.Connection) -> None:
            with _together(db):
                db.executemany(
                    "INSERT OR REPLACE INTO vector (digest, model, bits, value) VALUES (?,?,?,?)",
                    [(digest, model, bits, value) for digest, bits, value in vectors],
                )

        self._do(work)

    def close(self) -> None:
        """Stop reading files, as soon as the one that is read is done. Does not block."""
        self._closed = True

    def _do(self, work: Callable[[sqlite3.Connection], T], patience: float = _PATIENCE) -> T:
        if not self._lock.acquire(timeout=patience):
            raise MemoryUnavailable("The memory is large and is being read; search again in a minute.")
        try:
            try:
                return self._with(work)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):  # locked, or no room
                    raise
                for suffix in ("", "-journal"):
                    Path(f"{self._path}{suffix}").unlink(missing_ok=True)
                return self._with(work)
        except (sqlite3.Error, OSError) as error:
            raise MemoryUnavailable(f"The memory cannot be searched at the moment: {error}.") from error
        finally:
            self._lock.release()

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T:
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            db.text_factory = forgiving
            db.execute("PRAGMA synchronous=OFF")  # what a power failure damages is made anew
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError(f"its version is {version}")
            if version == 0:
                db.executescript(_SCHEMA)
                self._seen = {}
            self._refresh(db)
            return work(db)

    def _refresh(self, db: sqlite3.Connection) -> None:
        """Read the files that look different from when they were read, and forget those that are gone.

        A few pieces are committed at a time, so that a process that ends meanwhile goes on there at its next start.
        """
        there = dict(_listed(self.room))
        if there == self._seen and None not in there.values():
            return
        known = {path: (file_id, sign) for file_id, path, sign in db.execute("SELECT file_id, path, sign FROM file")}
        signs = {path: " ".join(map(str, looks or ())) for path, looks in there.items()}
        changed = [(path, sign) for path, sign in signs.items() if not sign or known.get(path, (0, ""))[1] != sign]
        gone = [(path, None) for path in known if path not in there]
        todo = [*gone, *sorted(changed)]
        steps = itertools.chain.from_iterable(
            _forget(db, known[path][0])
            if sign is None
            else _read(db, self.room, path, sign, known.get(path, (None,))[0])
            for path, sign in todo
        )
        more = True
        while more:
            with _together(db):
                if self._closed:
                    raise MemoryUnavailable("The memory is closed.")
                more = any([True for _ in itertools.islice(steps, _AT_ONCE)])
        self._seen = there


@contextlib.contextmanager
def _together(db: sqlite3.Connection) -> Iterator[None]:
    """Commit all that is written inside, or nothing of it."""
    db.execute("BEGIN")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _listed(room: Workspace) -> Iterator[tuple[str, tuple[int, ...] | None]]:
    """Yield the path of each file of the memory, and how it looks; None: it may change again and look the same."""
    for above in ((), (FOLDER,)):
        with contextlib.suppress(WorkspaceError), room.descend(above) as folder, os.scandir(folder) as entries:
            now = time.time_ns()
            for one in entries:
                if not (one.name.endswith(ENDING) if above else one.name == FILE):
                    continue
                try:
                    found = one.stat(follow_symlinks=False)
                except OSError:
                    continue
                # programs can set the time of the last write, but not that of the last change
                looks = found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
                yield "/".join((*above, one.name)), looks if abs(now - found.st_ctime_ns) > _UNSETTLED else None


def _read(db: sqlite3.Connection, room: Workspace, path: str, sign: str, file_id: int | None) -> Iterator[None]:
    """Bring the pieces of a file up to date, one at each step; those before the first that has changed stay."""
    try:
        with room.open(path) as file:
            content = file.read()
            changed = os.fstat(file.fileno()).st_ctime_ns
    except WorkspaceError:
        if file_id is not None:
            yield from _forget(db, file_id)
        return
    digest = hashlib.sha256(content).hexdigest()
    if file_id is None:
        file_id = db.execute("INSERT INTO file (path, sign, digest, changed) VALUES (?,'','',0)", (path,)).lastrowid
    done = "UPDATE file SET sign=?, digest=?, changed=? WHERE file_id=?"
    (before,) = db.execute("SELECT digest FROM file WHERE file_id=?", (file_id,)).fetchone()
    if before != digest:
        db.execute(done, ("", "", 0, file_id))  # what it has is of no content until all of this is done
        new = list(pieces(content.decode(errors="replace").replace("\0", " ")))
        there = "SELECT piece_id, first, last, digest FROM piece WHERE file_id=? ORDER BY piece_id"
        old = db.execute(there, (file_id,)).fetchall()
        alike = (tuple(had) == (one.first, one.last, _digest(one)) for (_, *had), one in zip(old, new, strict=False))
        same = sum(1 for _ in itertools.takewhile(bool, alike))
        for piece_id, *_ in reversed(old[same:]):
            _drop(db, piece_id)
            yield
        named = path.rpartition("/")[2].removesuffix(ENDING)
        for piece in itertools.islice(new, same, None):
            _add(db, file_id, named, piece)
            yield
    db.execute(done, (sign, digest, changed, file_id))
    yield


def _add(db: sqlite3.Connection, file_id: int | None, named: str, piece: Piece) -> None:
    piece_id = db.execute(
        "INSERT INTO piece (file_id, first, last, above, text, digest) VALUES (?,?,?,?,?,?)",
        (file_id, piece.first, piece.last, piece.above, piece.text, _digest(piece)),
    ).lastrowid
    found_by = (" ".join(terms.indexed(text)) for text in (piece.text, f"{named} {piece.above}"))
    db.execute("INSERT INTO words (rowid, inside, above) VALUES (?,?,?)", (piece_id, *found_by))


def _digest(piece: Piece) -> str:
    return hashlib.sha256(f"{piece.above}\n{piece.text}".encode()).hexdigest()[:32]


def _drop(db: sqlite3.Connection, piece_id: int) -> None:
    db.execute("DELETE FROM words WHERE rowid=?", (piece_id,))
    db.execute("DELETE FROM piece WHERE piece_id=?", (piece_id,))


def _forget(db: sqlite3.Connection, file_id: int) -> Iterator[None]:
    """Forget a file, a piece at each step, from its end as `_read` does."""
    theirs = "SELECT piece_id FROM piece WHERE file_id=? ORDER BY piece_id DESC"
    for (piece_id,) in db.execute(theirs, (file_id,)).fetchall():
        _drop(db, piece_id)
        yield
    db.execute("DELETE FROM file WHERE file_id=?", (file_id,))
    yield


def _found(db: sqlite3.Connection, room: Workspace, asked: Sequence[tuple[str, str]], near: Sequence[int]) -> Found:
    # about the number of pieces: counting them would take longer than all else
    (total,) = db.execute("SELECT coalesce(max(piece_id), 0) FROM piece").fetchone()
    counts: dict[str, int] = {}
    for word in dict.fromkeys(form for forms in asked for form in forms):
        if (row := db.execute("SELECT doc FROM known WHERE term=?", (word,)).fetchone()) is not None:
            counts[word] = row[0]
    rows = {}
    for piece_id in dict.fromkeys((*_candidates(db, asked, counts, total), *near)):
        path, first, last, above, text, inside, context, digest, changed = db.execute(
            "SELECT path, first, last, piece.above, piece.text, inside, words.above, file.digest, changed FROM piece"
            " JOIN file USING (file_id) JOIN words ON words.rowid=piece_id WHERE piece_id=?",
            (piece_id,),
        ).fetchone()
        state = FileState(room.whole(path.split("/")), digest, changed)
        rows[piece_id] = Row(path, first, last, above, text, inside.split(), context.split(), state)
    has_days = db.execute("SELECT 1 FROM file WHERE path<>? LIMIT 1", (FILE,)).fetchone() is not None
    return Found(asked, total, has_days, counts, rows)


def _candidates(
    db: sqlite3.Connection, asked: Sequence[tuple[str, str]], counts: Mapping[str, int], total: int
) -> list[int]:
    """Return the pieces that hold most of the words, where rare words count for more.

    The time is bounded: only so many places of words are read, those of the rarest words first. Where that leaves words
    out, the newest pieces in which most of the rarest words stand together are candidates as well.
    """
    rarest = sorted({begin for _, begin in asked if begin in counts}, key=lambda form: counts[form])
    whole = sorted({word for word, _ in asked if word in counts}.difference(rarest), key=lambda form: counts[form])
    matching = "SELECT rowid FROM words WHERE words MATCH ?"
    places, left = dict[str, Sequence[int]](), _PLACES
    for form in (*rarest, *whole):
        if left >= counts[form]:
            places[form] = [piece_id for (piece_id,) in db.execute(matching, (f'"{form}"',))]
            left -= counts[form]
    scores = dict[int, float]()
    for word, beginning in asked:
        said = dict[int, float]()
        for form, worth in ((beginning, terms.BEGIN), (word, 1.0)):
            if form in places:
                said.update(dict.fromkeys(places[form], worth * terms.weight(counts[form], total)))
        for piece, worth in said.items():
            scores[piece] = scores.get(piece, 0.0) + worth
    found = dict[int, None]()
    if not places.keys() >= set(rarest):
        some = [f'"{form}"' for form in rarest[:_TOGETHER]]
        for most in range(len(some), 0, -1):
            if len(found) < CANDIDATES:
                together = " OR ".join(f"({' AND '.join(forms)})" for forms in itertools.combinations(some, most))
                newest = db.execute(f"{matching} ORDER BY rowid DESC LIMIT ?", (together, CANDIDATES))
                found.update(dict.fromkeys(piece_id for (piece_id,) in newest))
    best = heapq.nlargest(CANDIDATES, zip(scores.values(), scores.keys(), strict=True))
    return list(dict.fromkeys((*(piece_id for _, piece_id in best), *found)))
