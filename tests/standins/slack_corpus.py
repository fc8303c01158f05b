"""The payloads of tests/channels/fixtures/slack_events.json: what a reader of Slack's events must understand or refuse.

Each is (kind, payload), kind being events_api, slash_commands or interactive. Builders return new copies.
"""

import copy
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "channels" / "fixtures" / "slack_events.json"


def readable() -> dict[str, tuple[str, Any]]:
    """By name: payloads as Slack sends them."""
    rows = json.loads(FILE.read_text())["readable"]
    return {name: (row["kind"], row["payload"]) for name, row in rows.items()}


def malformed() -> dict[str, tuple[str, Any]]:
    """By name: payloads with one place removed or replaced, and some that are nothing at all."""
    good, found = readable(), {}
    for name, row in json.loads(FILE.read_text())["malformed"].items():
        kind, payload = copy.deepcopy(good[row["of"]]) if "of" in row else (row["kind"], row["payload"])
        *path, last = row.get("remove") or row.get("at") or [None]
        inner = payload
        for step in path:
            inner = inner[step]
        if "remove" in row:
            del inner[last]
        elif "at" in row:
            inner[last] = row["value"]
        found[name] = (kind, payload)
    return found
