"""Everything that must survive: SQLite behind one class per subject, one method per transaction.

Nothing of SQL crosses this wall: callers hand in and get back frozen values (`bot/persistence/`).
"""
