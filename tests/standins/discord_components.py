"""The documented form of action rows, buttons, selects and text inputs."""

from tests.standins.discord_fields import ACTION_ROW, INNER, check, refusal
from tests.standins.discord_ledger import Json

MAX_ROWS = 5
LINK, PREMIUM = 5, 6


def check_components(rows: list[Json], *path: str | int, modal: bool = False) -> None:
    """Refuse rows that Discord would refuse. In a modal they hold text inputs, in a message buttons and selects."""
    where = path or ("components",)
    if len(rows) > MAX_ROWS:
        raise refusal([(where, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")])
    used: set[str] = set()
    for number, row in enumerate(rows):
        if row.get("type") != 1:
            words = 'Value of field "type" must be one of (1,).'
            raise refusal([((*where, number), "UNION_TYPE_CHOICES", words)])
        check(row, ACTION_ROW, *where, number)
        for place, inner in enumerate(row["components"]):
            here = (*where, number, "components", place)
            kind = inner.get("type")
            if kind not in ((4,) if modal else (2, 3, 5, 6, 7, 8)):
                raise refusal([(here, "UNION_TYPE_CHOICES", f"a component of type {kind!r} cannot stand here")])
            check(inner, INNER[kind], *here)
            if kind == 2:
                _check_button(inner, *here)
            if kind != 2 and len(row["components"]) > 1:
                raise refusal(
                    [(here, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")]
                )
            _unique(inner, used, *here)


def _unique(inner: Json, used: set[str], *here: str | int) -> None:
    name = inner.get("custom_id")
    if name is not None and name in used:
        words = "Component custom id cannot be duplicated"
        raise refusal([((*here, "custom_id"), "COMPONENT_CUSTOM_ID_DUPLICATED", words)])
    used.add(name or "")


def _check_button(button: Json, *here: str | int) -> None:
    style, label = button["style"], button.get("label") or button.get("emoji")
    if style == LINK and (not button.get("url") or button.get("custom_id")):
        raise refusal([(here, "BUTTON_COMPONENT_INVALID_FIELDS", "A link button has a url and no custom_id")])
    if style not in (LINK, PREMIUM) and (button.get("url") or not button.get("custom_id")):
        raise refusal([((*here, "custom_id"), "BASE_TYPE_REQUIRED", "A custom id is required")])
    if style != PREMIUM and not label:
        raise refusal([(here, "BUTTON_COMPONENT_INVALID_LABEL", "A button needs a label or an emoji")])
