"""The documented form of action rows and buttons."""

from tests.standins.discord_fields import ACTION_ROW, BUTTON, check, refusal
from tests.standins.discord_ledger import Json

MAX_ROWS = 5


def check_components(rows: list[Json]) -> None:
    """Refuse rows of buttons that Discord would refuse; it knows others, which no client of ours sends."""
    if len(rows) > MAX_ROWS:
        raise refusal([(("components",), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")])
    used: set[str] = set()
    for number, row in enumerate(rows):
        if row.get("type") != 1:
            words = 'Value of field "type" must be one of (1,).'
            raise refusal([(("components", number), "UNION_TYPE_CHOICES", words)])
        check(row, ACTION_ROW, "components", number)
        for place, inner in enumerate(row["components"]):
            here = ("components", number, "components", place)
            kind = inner.get("type")
            if kind != 2:
                raise refusal([(here, "UNION_TYPE_CHOICES", f"a component of type {kind!r} cannot stand here")])
            check(inner, BUTTON, *here)
            _unique(inner, used, *here)


def _unique(inner: Json, used: set[str], *here: str | int) -> None:
    name = inner.get("custom_id")
    if name is not None and name in used:
        words = "Component custom id cannot be duplicated"
        raise refusal([((*here, "custom_id"), "COMPONENT_CUSTOM_ID_DUPLICATED", words)])
    used.add(name or "")
