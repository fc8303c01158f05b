"""Counts of what tests start, open and wait for, held per folder of tests by `tests/counts.toml`.

`tally` counts inside the process of the tests, `table` reads, compares and writes the limits, `plugin` joins both to
pytest, and `standins` leaves out the stand-ins' own tests while no stand-in has changed.
"""
