"""The limits: never more than a platform lets through, never longer to wait than it takes, bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from channels.adapter import RateLimits
from channels.failures import Rates
from tests.memory import held_by


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_one_message_a_second_in_a_chat() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    assert limits.take("1", False) == 0
    assert limits.take("1", False) == 1.0
    assert limits.take("2", False) == 0
    clock.now += 1.0
    assert limits.take("1", False) == 0


def test_the_second_counts_from_the_end_of_the_call() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    assert limits.take("1", False) == 0
    clock.now += 0.5
    limits.ended("1")
    limits.ended("unknown")
    assert limits.take("1", False) == 1.0


def test_twenty_messages_a_minute_in_a_group() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    for _ in range(20):
        assert limits.take("-1", True) == 0
        clock.now += 1.0
    assert limits.take("-1", True) == 40.0
    clock.now += 40.0
    assert limits.take("-1", True) == 0


def test_a_flood_holds_one_chat_back() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    limits.hold("1", 5.0)
    assert limits.take("1", False) == limits.held("1") == 5.0
    assert limits.take("2", False) == limits.held("2") == 0
    clock.now += 5.0
    assert limits.take("1", False) == 0


def test_no_call_waits_for_a_frame_and_frames_wait_for_all() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    assert limits.take("1", False) == 0
    assert limits.take("1", False, frame=True) == 1.0
    clock.now += 1.0
    assert limits.take("1", False, frame=True) == 0
    assert limits.take("1", False, frame=True) == limits.held("1", frame=True) == 1.0
    assert limits.take("1", False) == 0
    limits.hold("1", 5.0, frame=True)
    assert limits.held("1") == 0
    clock.now += 1.0
    assert limits.take("1", False) == 0
    clock.now += 1.0
    assert limits.take("1", False, frame=True) == 3.0
    limits.hold("1", 9.0)
    limits.hold("1", 1.0)
    assert limits.take("1", False, frame=True) == limits.take("1", False) == 9.0


def test_frames_leave_a_quarter_of_all_places() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    for _ in range(15):
        assert limits.take("-1", True, frame=True) == 0
        clock.now += 4.0
    assert limits.take("-1", True, frame=True) == 0, "the first one is a minute ago"
    assert limits.take("-2", True) == 0
    granted = sum(limits.take(str(chat), False, frame=True) == 0 for chat in range(30))
    assert granted + 2 == 22
    assert [limits.take(f"more {chat}", False) for chat in range(9)] == [*[0] * 8, 1.0]


CALLS = st.lists(st.tuples(st.sampled_from(["1", "2", "-1", "-2"]), st.floats(0, 3), st.booleans()), max_size=150)


@given(CALLS, st.integers(1, 4), st.integers(1, 5))
def test_no_window_ever_holds_more_than_its_limit(
    calls: list[tuple[str, float, bool]], per_second: int, group: int
) -> None:
    clock = Clock()
    limits = RateLimits(Rates(group_per_minute=group, per_second=per_second), clock)
    granted: list[tuple[float, str, bool]] = []
    for chat, pause, frame in calls:
        clock.now += pause
        wait = limits.take(chat, chat.startswith("-"), frame)
        if wait > 0:
            # The wait is enough when nobody else takes the place.
            clock.now += wait + 1e-6
            assert limits.take(chat, chat.startswith("-"), frame) == 0
        granted.append((clock.now, chat, frame))
    for index, (at, chat, frame) in enumerate(granted):
        assert sum(at <= other < at + 1 - 1e-4 for other, _, _ in granted) <= per_second
        behind = [kind for other, where, kind in granted[index:] if where == chat and other < at + 1 - 1e-4]
        assert len(behind) == 1 or (frame and behind == [True, False])
        if chat.startswith("-"):
            assert sum(at <= other < at + 60 - 1e-4 for other, where, _ in granted if where == chat) <= group


def test_memory_is_bounded_by_one_minute() -> None:
    clock = Clock()
    limits = RateLimits(Rates(), clock)
    held = 0
    for chat in range(10_000):
        clock.now += 1 / 10
        assert limits.take(str(chat), False) == 0
        limits.hold(str(chat), 1.0)
        assert limits.take(f"of {chat}", False, frame=True) == 0
        if chat == 60 * 10 + 100:  # more than a minute has passed
            held = held_by(limits)
    assert held_by(limits) <= held * 1.2
