"""`hark sessions`: transcripts, with a service that runs and without one."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_core import to_json

from bot.cli.local import FAILED, USAGE, asked, complain
from bot.cli.status import at
from bot.cli.terminal.client import Rejected
from bot.config.model import Config
from bot.persistence.sessions import NoSuchTranscript
from bot.sessions.foreign import NotImported
from bot.sessions.forgetting import Forget, NotForgotten
from bot.sessions.formats import Format
from bot.sessions.service import Sessions

if TYPE_CHECKING:  # it imports the whole service
    from bot.service import Parts


async def show_list(as_json: bool, config: Config) -> int:
    """Print the transcripts of all sessions. Returns the exit code."""
    async with asked(config, _sessions) as there:
        found = await there.listed()
    rows = (
        f"{one.session}  {one.transcript}  {at(one.created_at)}  {one.messages} messages"
        f"{'  (current)' if one.current else ''}  {one.first}"
        for one in found
    )
    print(to_json(found).decode() if as_json else "\n".join(rows) or "There are no sessions yet.")  # noqa: T201
    return 0


async def show(name: str, config: Config) -> int:
    """Print a transcript. Returns the exit code: 1 when there is none."""
    return await export(name, "markdown", None, config)


async def search(words: str, as_json: bool, config: Config) -> int:
    """Print the newest lines in which words stand. Returns the exit code: 1 when there is none."""
    async with asked(config, _sessions) as there:
        found = await there.search(words)
    rows = (f"{one.session}  {one.transcript}  {at(one.at)}  {one.role}: {one.text}" for one in found)
    if as_json or found:
        print(to_json(found).decode() if as_json else "\n".join(rows))  # noqa: T201
    else:
        complain("Nothing was found.")
    return 0 if found else FAILED


async def export(name: str, form: Format, output: Path | None, config: Config) -> int:
    """Write a transcript to a file, or print it. Returns the exit code: 1 when there is none."""
    try:
        async with asked(config, _sessions) as there:
            exported = await there.export(name, form)
    except (NoSuchTranscript, Rejected) as error:
        complain(str(error))
        return FAILED
    if output is None:
        print(exported.text, end="")  # noqa: T201
        return 0
    try:
        await asyncio.to_thread(_write, output, exported.text)
    except OSError as error:
        complain(f"{output} cannot be written: {error.strerror}")
        return FAILED
    print(f"The transcript is in {output}.")  # noqa: T201
    return 0


async def take_in(file: Path, session: str, config: Config) -> int:
    """Import a file, by its absolute path. Returns the exit code: 1 when nothing of it can be imported."""
    try:
        async with asked(config, _sessions) as there:
            found = await there.take_in_file(file, session)
    except (NotImported, Rejected) as error:
        complain(str(error))
        return FAILED
    skipped = f" {found.skipped} lines could not be read and were skipped." if found.skipped else ""
    print(  # noqa: T201
        f"{found.added} new lines are the transcript {found.transcript} of {found.session}.{skipped}"
        f" `/sessions resume {found.transcript[:14]}` goes on with it."
    )
    return 0


async def prune(older_than: timedelta | None, keep: int | None, config: Config) -> int:
    """Delete old transcripts. Returns the exit code."""
    if older_than is None and keep is None:
        older_than, keep = config.sessions.prune.max_age, config.sessions.prune.max_transcripts
    if older_than is None and keep is None:
        complain("Say which: --older-than TIME, --keep N, or sessions.prune in the configuration.")
        return USAGE
    async with asked(config, _sessions) as there:
        print(f"{await there.prune(older_than, keep)} transcripts were deleted.")  # noqa: T201
    return 0


async def forget(who: str, sure: bool, config: Config) -> int:
    """Delete a person's data. Returns the exit code: 1 when nothing is stored of them, 2 when nobody is sure."""
    if not sure:
        complain(f"All that is stored of {who} would be deleted for good. Say it with --yes.")
        return USAGE
    try:
        async with asked(config, _forget) as there:
            print(await there.forget_person(who))  # noqa: T201
    except (NotForgotten, Rejected) as error:
        complain(str(error))
        return FAILED
    return 0


def _write(file: Path, text: str) -> None:
    """Write what people have said to a file that nobody else may read. Raises OSError."""
    with open(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="") as opened:
        opened.write(text)


def _sessions(parts: "Parts") -> Sessions:
    return parts.sessions


def _forget(parts: "Parts") -> Forget:
    return parts.forget
