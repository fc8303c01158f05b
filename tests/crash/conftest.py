"""Thousands of services come and go here: their logs are of no use and cost time."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import structlog


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Makes empty directories, in memory where the system has such a place: syncs to a disk cost more than all else."""
    memory = Path("/dev/shm")
    base = Path(tempfile.mkdtemp(dir=memory)) if os.access(memory, os.W_OK) else tmp_path
    numbers = count(1)

    def make() -> Path:
        path = base / str(next(numbers))
        path.mkdir()
        return path

    yield make
    shutil.rmtree(base)
