"""`python -m tests.bot.store.schema`: writes bot/store/schema.sql from the migrations, after one was added."""

import sqlite3
from contextlib import closing

from bot.store.database import SCHEMA, describe, migrate, newest_version


def migrated() -> str:
    """Return the script that describes what all migrations in their order make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        migrate(database, newest_version())
        return describe(database)


if __name__ == "__main__":
    SCHEMA.write_text(migrated(), encoding="utf-8")
