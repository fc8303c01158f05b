"""What all transactions that carry out a command share, and those of commands that only say something.

A command is carried out in one transaction (TC): its effect, the answer to it, and its own end. So a crash can neither
repeat an effect nor lose an answer. The transactions with an effect are in the modules of their subjects, and call
`begin` first and `finish` last.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.events import Outcome
from bot.persistence.deliveries import PlanIn
from bot.persistence.turns import CommandKept, Stopped
from bot.store import codec, endings, rows
from bot.store.gone import list_told
from bot.store.writer import Subject, transaction
from channels.message import InboundMessage
from channels.outgoing import Delivery, Planned

# The result of a command that was carried out before, or whose button somebody else has pressed.
NOT_ANEW = CommandKept(Stopped(), ())


@dataclass(frozen=True, slots=True)
class Begun:
    """A command whose effect can be written."""

    # The place of the command in the inbox.
    seq: int
    # The conversation that it is answered in.
    conv_id: int
    # The turn that was made when it was accepted, so that its sender can ask for it by its id; else None.
    turn_id: str | None
    # The edit of the message whose button the command is.
    edited: tuple[Delivery, ...]
    # When it is carried out, in milliseconds.
    now: int


class Commands(Subject):
    """Transactions of commands that only say something, and of buttons that are what the person says.

    In all of them `seq` is the place of the command in the inbox. `chosen` is the edit of the message whose button the
    command is; if that edit is planned already, somebody else has pressed first, and nothing else is done.
    """

    @transaction
    def answer(
        self, db: sqlite3.Connection, seq: int, blocks: Sequence[Planned], chosen: Sequence[Planned] = ()
    ) -> CommandKept:
        """Answer a command with blocks, and do nothing else."""
        begun = begin(db, seq, self._now(), chosen)
        return finish(db, begun, blocks) if begun else NOT_ANEW

    @transaction
    def take_up(
        self, db: sqlite3.Connection, seq: int, message: InboundMessage, chosen: Sequence[Planned]
    ) -> CommandKept:
        """Make the press of a button the message of who pressed it, which a turn answers."""
        begun = begin(db, seq, self._now(), chosen)
        return become_message(db, begun, message) if begun else NOT_ANEW


def begin(db: sqlite3.Connection, seq: int, now: int, chosen: Sequence[Planned] = ()) -> Begun | None:
    """Begin to carry out a command; None if it was carried out before, or somebody else was first (see `Commands`)."""
    found = db.execute(
        "UPDATE inbox SET state='done' WHERE seq=? AND state='waiting' RETURNING conv_id, turn_id", (seq,)
    ).fetchone()
    if found is None:  # carried out already: by recovery, or by the run that recovery overtook
        return None
    conv_id, turn_id = found
    edited = rows.plan(db, PlanIn(conv_id), chosen, turn_id, now)
    return Begun(seq, conv_id, turn_id, edited, now) if edited or not chosen else None


def finish(
    db: sqlite3.Connection,
    begun: Begun,
    blocks: Sequence[Planned],
    stopped: Stopped | None = None,
    resumed: tuple[str, bool] | None = None,
) -> CommandKept:
    """Plan the answer to a command and end it. stopped, resumed: see `CommandKept`."""
    endings.take_acknowledgements_away(db, "seq=? AND inbox.state='done'", begun.seq, begun.now)  # a message at first
    deliveries = (*begun.edited, *rows.plan(db, PlanIn(begun.conv_id), blocks, begun.turn_id, begun.now))
    list_told(db, begun.seq, deliveries)
    if begun.turn_id is not None:
        endings.end_turn(db, begun.turn_id, Outcome.COMPLETED, begun.now)
    return CommandKept(stopped or Stopped(), deliveries, resumed)


def become_message(
    db: sqlite3.Connection,
    begun: Begun,
    message: InboundMessage,
    asks_again: str | None = None,
    blocks: Sequence[Planned] = (),
    stopped: Stopped | None = None,
) -> CommandKept:
    """Make a command a message that waits for a turn: for its own, if one was made when it was accepted.

    asks_again: the request whose call its turn begins with. blocks: what is said besides. stopped: see `CommandKept`.
    """
    (session_key,) = db.execute(
        "UPDATE inbox SET kind='message', state='waiting', payload=?, asks_again=? WHERE seq=? RETURNING session_key",
        (codec.INBOUND.dump(message), asks_again, begun.seq),
    ).fetchone()
    return finish(db, replace(begun, turn_id=None), blocks, stopped, resumed=(session_key, False))
