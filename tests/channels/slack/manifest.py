"""The manifest of `docs/channels/slack.md`."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

PAGE = Path(__file__).parents[3] / "docs" / "channels" / "slack.md"


@cache
def shown() -> list[dict[str, Any]]:
    """The one for Socket Mode, and what the one for HTTP has instead."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [one for one in (YAML(typ="safe").load(block) for block in blocks) if "features" in one]


def manifest(mode: str = "socket") -> dict[str, Any]:
    """As it is to be pasted."""
    whole, instead = shown()
    return whole if mode == "socket" else _over(whole, instead)


def _over(below: Any, above: Any) -> Any:
    """One mapping over another."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{name: _over(below.get(name), value) for name, value in above.items()}}
