"""For tests that call a channel directly: a delivery as the store hands it out, and where a name has led."""

from collections.abc import Sequence
from typing import Any

from channels.message import Origin, Place
from channels.outgoing import Delivery, DeliveryState
from channels.sources import sentence


def delivery(body: str, place: Place, **fields: Any) -> Delivery:
    """Begun for the first time, unless the fields say otherwise."""
    given = {
        "delivery_id": 1,
        "conv_id": 1,
        "turn_id": None,
        "source": sentence("test"),
        "nonce": 1,
        "state": DeliveryState.SENDING,
        "attempts": 1,
        "not_before": 0,
        "longest": 0,
        "planned_at": 0,
    }
    return Delivery(body=body, place=place, **given | fields)


def led_to(found: Origin | Sequence[str]) -> Place | Sequence[str]:
    """The conversation that `Channel.find` gave; else the names."""
    return found.place if isinstance(found, Origin) else found
