"""The road of a message, an approval and a beat, counted: see `test_road.py` and `python -m tests.road`."""
