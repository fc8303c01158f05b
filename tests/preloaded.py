"""What the process imports from which others are forked, and nobody else; see `forked.py`."""

import gc

from tests import forked
from tests.crash import child

__all__ = ["child", "forked"]

# What is there is never garbage: a collection in a fork that looked at it would copy its memory.
gc.collect()
gc.freeze()
