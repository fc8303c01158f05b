"""The store: an SQLite file behind one class per subject, each of whose methods is one transaction or one query.

No SQL type crosses this wall: methods take and return the frozen values of `bot/persistence/`.
"""
