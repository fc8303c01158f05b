"""`constraints.txt` pins everything that is installed and names no host."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "constraints.txt").read_text().splitlines()
PIN = re.compile(r"(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)==(?P<version>[0-9][^\s;]*)(?: ; \S.*)?")


def test_every_line_is_an_exact_version_and_no_line_names_a_host() -> None:
    assert [line for line in LINES if not PIN.fullmatch(line)] == []
    assert [line for line in LINES if "://" in line or "index" in line.partition("=")[0]] == []


def test_every_requirement_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[^\w.-]", one)[0].lower().replace("_", "-").replace(".", "-") for one in wanted}
    assert names - {match["name"] for line in LINES if (match := PIN.fullmatch(line))} == set()
