"""What tests of the agent's parts are given."""

from tests.service import hark_as_it_comes

__all__ = ["hark_as_it_comes"]
