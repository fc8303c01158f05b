"""Faults that show when keys and models fail and recover for a long time."""

from tests.mutants import Fault

_FLEET = "tests/bot/runs/test_fleet_on_a_clock.py::test_every_message_is_answered_once"

FAULTS = (
    Fault(
        "fleet/resting-keys-are-asked",
        "Fleet.is_ready",
        "return not self.rests or self.until(client) <= self._now()",
        "return True",
        (_FLEET,),
    ),
    Fault(
        "fleet/rests-end-with-the-process",
        "OutageWatch.load",
        "self._fleet.load(await self._store.outages.rests())",
        "self._fleet.load(())",
        (_FLEET,),
    ),
    Fault(
        "fleet/parked-turns-stay",
        "OutageWatch._look",
        "self._wake(session_key, CHILD in session_key)\n        for name",
        "pass\n        for name",
        (_FLEET,),
    ),
)
