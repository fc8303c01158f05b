"""The columns of a delivery as the store reads them, and the delivery that is made of them."""

from typing import Any

from bot.store import codec
from channels.message import Place
from channels.outgoing import Action, Delivery, DeliveryState
from channels.sources import Source, SourceKind

COLUMNS = (
    "delivery_id, conv_id, turn_id, source, piece, source_kind, subject, answer, body, nonce, said, step, action,"
    " target, reply_to, buttons, file, silent, respond, unless, state, attempts, not_before,"
    " not_before - coalesce(begun_at, not_before), planned_at"
)


def read(row: tuple[Any, ...], place: Place) -> Delivery:
    """Make a Delivery of a row of COLUMNS and the place of its conversation."""
    delivery_id, conv_id, turn_id, key, piece, kind, subject, answer, body, nonce, said, *rest = row
    step, action, target, reply_to, buttons, *rest = rest
    file, silent, respond, unless, state, attempts, not_before, longest, planned_at = rest
    return Delivery(
        delivery_id=delivery_id,
        conv_id=conv_id,
        place=place,
        turn_id=turn_id,
        source=Source(SourceKind(kind), key, subject or "", answer),
        piece=piece,
        body=body,
        nonce=nonce,
        said=said,
        step=step,
        action=(Action.EDIT if target else Action.SEND) if action == Action.PREVIEW else Action(action),
        target=target or "",
        reply_to=reply_to or "",
        buttons=codec.BUTTONS.load(buttons, ()),
        file=codec.FILE.load(file, None),
        silent=bool(silent),
        respond=respond or "",
        unless=unless or "",
        state=DeliveryState(state),
        attempts=attempts,
        not_before=not_before,
        longest=longest,
        planned_at=planned_at,
    )
