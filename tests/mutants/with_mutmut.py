"""Lets mutmut try its mutants of modules: of plain functions, since it leaves decorated ones out."""

import configparser
import re
import subprocess
import sys
from collections.abc import Sequence

from tests.mutants import machine
from tests.mutants.copies import Copy

_TESTS = "pytest_add_cli_args_test_selection"
_RESULT = re.compile(r"^ +(\S+): (.+)$", re.MULTILINE)
# What tests read besides the packages and themselves, which mutmut copies.
_READ = ("bench", "docs", "examples", "scripts", "config.example.yaml", "constraints.txt", "Makefile", "README.md")


def survivors(copy: Copy, files: Sequence[str], tests: Sequence[str], workers: int) -> list[str]:
    """Return the mutants of files that tests do not notice, each with its change; or what mutmut says when it fails."""
    config = configparser.ConfigParser()
    config["mutmut"] = {
        "source_paths": "\n".join(machine.PACKAGES),
        "only_mutate": "\n".join(files),
        "also_copy": "\n".join(_READ),
        _TESTS: "\n".join(tests),
        "use_git_change_detection": "false",
        "track_dependencies": "false",
    }
    with (copy.home / "setup.cfg").open("w") as file:
        config.write(file)
    ran = _mutmut(copy, "run", "--max-children", str(workers))
    if ran.returncode:
        return [f"mutmut ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-2000:]}"]
    found = [name for name, result in _RESULT.findall(_mutmut(copy, "results").stdout) if result == "survived"]
    return ["\n".join(_changed(_mutmut(copy, "show", name).stdout, name)) for name in found]


def _changed(shown: str, name: str) -> list[str]:
    return [name, *(line for line in shown.splitlines() if re.match(r"[-+](?![-+])", line))]


def _mutmut(copy: Copy, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in copy.environ.items() if name != "PYTHONPATH"}
    command = (sys.executable, "-m", "mutmut", *arguments)
    return subprocess.run(command, cwd=copy.home, env=environ, capture_output=True, text=True)
