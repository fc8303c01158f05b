"""Connections of both listeners: how long they may keep us waiting, how many there may be, and who makes room."""

from tests.mutants import Fault

_TESTS = "tests/wire/test_bounds.py::test_"

FAULTS = (
    Fault(
        "connections/no-deadline",
        "Guest._enter",
        "self._deadline = loop.call_later(seconds, self.end)",
        "pass",
        (f"{_TESTS}what_does_not_come_in_time_ends_its_connection",),
    ),
    Fault(
        "connections/a-trickle-puts-off-the-end",
        "Guest.look",
        "if found is not self.stage and self in self._places:",
        "if self in self._places:",
        (f"{_TESTS}a_trickle_does_not_put_off_the_end",),
    ),
    Fault(
        "connections/answers-have-a-deadline",
        "Limits.seconds",
        "if stage is Stage.ANSWER:",
        "if False:",
        (f"{_TESTS}an_answer_may_take_longer_than_all_deadlines",),
    ),
    Fault(
        "connections/an-answer-waits-for-ever-to-be-taken",
        "Guest.pause_writing",
        "self._blocked = True",
        "pass",
        (f"{_TESTS}an_answer_that_nobody_takes_ends",),
    ),
    Fault(
        "connections/nobody-makes-room",
        "_makes_room",
        "if not waiting:",
        "if True:",
        (f"{_TESTS}hundreds_that_keep_it_waiting_keep_nobody_out",),
    ),
    Fault(
        "connections/the-newest-makes-room",
        "_makes_room",
        "min(waiting, key=lambda guest: guest.since).end()",
        "max(waiting, key=lambda guest: guest.since).end()",
        (f"{_TESTS}whoever_waits_for_longest_makes_room_and_who_is_served_does_not",),
    ),
    Fault(
        "connections/who-is-served-makes-room",
        "_makes_room",
        "guest.seen and guest.stage is not Stage.ANSWER]",
        "guest.seen]",
        (f"{_TESTS}whoever_waits_for_longest_makes_room_and_who_is_served_does_not",),
    ),
    Fault(
        "connections/what-is-not-read-makes-room",
        "_makes_room",
        "if guest.seen and",
        "if",
        (f"{_TESTS}one_that_comes_in_the_middle_of_a_flood_is_read",),
    ),
    Fault(
        "connections/more-are-accepted-than-can-be-read",
        "Places.serve",
        "max(1, self.limits.spares // 4)",
        "100",
        (f"{_TESTS}one_that_comes_in_the_middle_of_a_flood_is_read",),
    ),
    Fault(
        "connections/one-address-takes-all",
        "Limits.of_peer",
        "return self.connections * 3 // 4",
        "return self.connections * 3",
        (f"{_TESTS}one_address_does_not_take_the_places_of_others",),
    ),
    Fault(
        "connections/without-bound",
        "usual_limits",
        "descriptors // 8",
        "descriptors",
        ("tests/bot/gateway/test_listener.py::test_few_descriptors_are_few_connections",),
    ),
    Fault(
        "connections/spare-places-are-kept-long",
        "Limits.seconds",
        "return self.spare if spare else",
        "return",
        (f"{_TESTS}spare_places_cannot_be_held",),
    ),
    Fault(
        "connections/half-a-request-of-any-size",
        "Places.add_pending",
        "if self.pending > self.limits.pending:",
        "if False:",
        (f"{_TESTS}of_too_many_bytes_that_wait_the_largest_request_goes",),
    ),
    Fault(
        "connections/bytes-are-counted-for-ever",
        "Guest._settle",
        "self._places.pending -= self.pending",
        "pass",
        (f"{_TESTS}bytes_count_until_a_request_is_whole",),
    ),
    Fault(
        "connections/every-address-of-a-machine-is-a-peer",
        "peer_of",
        "exploded[:19]",
        "exploded",
        (f"{_TESTS}a_network_of_addresses_is_one_peer",),
    ),
    Fault(
        "connections/no-refusal-on-the-webhook",
        "_answer",
        "if not connection.spare:",
        "if True:",
        (f"{_TESTS}where_all_are_being_answered_the_next_is_refused_in_words",),
    ),
    Fault(
        "connections/refused-and-kept",
        "_and_close.closing.sent",
        '(b"connection", b"close")',
        '(b"connection", b"keep-alive")',
        (f"{_TESTS}where_all_are_being_answered_the_next_is_refused_in_words",),
    ),
)
