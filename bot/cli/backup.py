"""`hark backup FILE`: a copy of the store as it is at one moment, while a service works on it and without one."""

import asyncio
import sqlite3
from pathlib import Path

from bot.cli.home import DATABASE, is_begun
from bot.cli.local import FAILED, complain
from bot.config.model import Config
from bot.store.database import copy_of


async def backup(file: Path, config: Config) -> int:
    """Make it. Returns the exit code: 1 when there is nothing to copy, or the copy could not be made."""
    if not is_begun(config):
        complain(f"There is no store in {config.state}, so there is nothing to copy.")
        return FAILED
    try:
        await asyncio.to_thread(copy_of, config.state / DATABASE, file)
    except FileExistsError:
        complain(f"{file} is there already; name a new file.")
        return FAILED
    except (OSError, sqlite3.Error) as error:
        complain(f"The store could not be copied to {file}: {error}")
        return FAILED
    print(f"The store is copied to {file}. The workspace, config.yaml and .env are files of their own.")  # noqa: T201
    return 0
