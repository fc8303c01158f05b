"""Faults that show only when an outage is long and many people wait."""

from tests.mutants import Fault

_SIZE = "tests/bot/runs/test_outage_at_size.py::test_"

FAULTS = (
    Fault(
        "outage_at_size/each-turn-asks",
        "Runner._is_known",
        "return self._route.wanted in self._route.fleet.missed",
        "return False",
        (f"{_SIZE}all_are_answered_within_a_minute_of_recovery",),
    ),
    Fault(
        "outage_at_size/one-session-goes-on",
        "OutageWatch._look",
        "for session_key in await self._store.outages.resume((wanted,)):",
        "for session_key in (await self._store.outages.resume((wanted,)))[:1]:",
        (f"{_SIZE}all_are_answered_within_a_minute_of_recovery",),
    ),
    Fault(
        "outage_at_size/everybody-is-told-of-keys",
        "OutageWatch.park",
        "to_owner=to_owner or turn.place.kind in LOCAL",
        "to_owner=True",
        (f"{_SIZE}the_owner_alone_is_told_what_to_mend",),
    ),
    Fault(
        "outage_at_size/keys-are-probed-all-the-time",
        "OutageWatch._probe",
        "pause = MENDED_EVERY if rest is not None and rest.kind in KEY_FAILURES else every",
        "pause = every",
        (f"{_SIZE}the_owner_alone_is_told_what_to_mend",),
    ),
)
