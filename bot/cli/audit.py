"""`hark security audit`: what lets others in further than need be, each with what to change. It changes nothing."""

import json
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from agent.sandbox.base import Confinement
from agent.sandbox.proof import choose
from agent.shell import load_rule
from agent.tools.permission import GRANT
from bot.cli.home import DATABASE, located
from bot.config.audit import SILENT, Audited, Finding, findings
from bot.config.document import Document
from bot.config.errors import ConfigError
from bot.config.load import examine
from bot.config.model import Config
from bot.config.secrets import secrets
from bot.telemetry.redact import Redactor

WARNING, CRITICAL = 1, 3
_DAY = 24 * 3600 * 1000


def audit(path: Path | None, as_json: bool) -> int:
    """Print what is found. Returns the exit code: 0 for nothing above a note, 1 for a warning, 3 for a critical one."""
    path, cwd = located(path)
    try:
        config, document = examine(path, os.environ, cwd)
    except ConfigError as error:
        config, document = (
            Config(workspace=cwd / "workspace", state=cwd / "state"),
            Document("", problems=[*error.problems]),
        )
    sandbox = "none" if config.tools.exec.security == "deny" else _sandbox(config)
    silent, grants, unread = _stored(config.state / DATABASE)
    found = findings(Audited(config=config, document=document, sandbox=sandbox, silent=silent, grants=grants))
    if unread:
        found.append(Finding("store", "warning", "state", f"The store cannot be read: {unread}.", "hark doctor"))
    _show(found, as_json, Redactor(secrets(config, config.environ(os.environ))))
    severities = {one.severity for one in found}
    return CRITICAL if "critical" in severities else WARNING if "warning" in severities else 0


def _show(found: Sequence[Finding], as_json: bool, redactor: Redactor) -> None:
    if as_json:
        text = json.dumps({"findings": [asdict(one) for one in found]}, ensure_ascii=False, indent=2)
    else:
        lines = (f"{one.severity:<9}{one.key or one.id}: {one.text}\n         fix: {one.fix}" for one in found)
        text = "\n".join(lines) or "Nothing was found."
    print(redactor.clean(text))  # noqa: T201


def _sandbox(config: Config) -> str:
    proved = choose(config.tools.exec.sandbox)
    return Confinement(sandbox=proved.sandbox, why=proved.why).shown


def _stored(file: Path) -> tuple[list[str], list[tuple[str, Sequence[str] | None, str]], str]:
    """Who is silent, what was allowed for always, and why that cannot be told; nothing where there is no store yet.

    The file is only read, also beside a service that writes it.
    """
    if not file.exists():
        return [], [], ""
    how = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True)) as db:
            since = int(time.time() * 1000) - SILENT * _DAY
            silent = [f"{channel}:{sender}" for channel, sender in db.execute(_SILENT, (since, since))]
            granted = db.execute("SELECT what, words FROM granted ORDER BY granted_at, what").fetchall()
    except sqlite3.Error as error:
        return [], [], str(error)
    grants: list[tuple[str, Sequence[str] | None, str]] = []
    for what, words in granted:
        if what.startswith(GRANT):
            rule = load_rule(what.removeprefix(GRANT))
            grants.append((rule.binary, rule.arguments, words))
        else:
            grants.append(("", (), words))  # of one call alone
    return silent, grants, ""


_SILENT = (
    "SELECT DISTINCT channel, sender FROM person WHERE standing IN ('allowed','owner') AND since < ? AND NOT EXISTS"
    " (SELECT 1 FROM inbox WHERE inbox.channel=person.channel AND inbox.sender=person.sender AND accepted_at >= ?)"
    " ORDER BY channel, sender"
)
