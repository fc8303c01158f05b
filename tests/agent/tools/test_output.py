"""However much a process writes, its head and its tail are kept and the rest is counted; and it is told at a pace."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.output import HeadAndTail, Paced
from tests.memory import held_by


@given(st.lists(st.binary(max_size=40)), st.integers(1, 20), st.integers(1, 20))
def test_head_tail_and_count_add_up_to_what_was_written(pieces: list[bytes], head: int, tail: int) -> None:
    output = HeadAndTail(head, tail)
    assert b"".join([output.add(piece) for piece in pieces]) == b"".join(pieces)[:head]
    whole = b"".join(pieces).translate(None, bytes(range(0x80, 0x100)) + b"\x00")
    ascii_only = HeadAndTail(head, tail)
    for start in range(0, len(whole), 7):
        ascii_only.add(whole[start : start + 7])
    text = ascii_only.text()
    if len(whole) <= head + tail:
        assert text == whole.decode()
    else:
        cut = f"\n[… {len(whole) - head - tail:,} bytes left out …]\n"
        assert text == whole[:head].decode() + cut + whole[-tail:].decode()


def test_characters_cut_by_the_gap_leave_no_debris() -> None:
    output = HeadAndTail(4, 4)
    output.add("ääääää".encode() + b"!")
    assert output.text() == "ää\n[… 5 bytes left out …]\nä!"
    output = HeadAndTail(3, 3)
    output.add("äääääääää".encode())
    assert output.text() == "ä\n[… 12 bytes left out …]\nä"


def test_what_is_not_text_is_replaced() -> None:
    output = HeadAndTail()
    output.add(b"a\xff\x00b")
    assert output.text() == "a��b"


def test_memory_is_bounded() -> None:
    output = HeadAndTail(10, 10)
    for _ in range(1000):
        output.add(b"x" * 1000)
    assert held_by(output) <= 3000


async def test_at_most_four_times_a_second_is_told_and_nothing_is_lost_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, told = [1000.0], list[tuple[float, str]]()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])

    async def pass_time(seconds: float) -> None:
        now[0] += seconds
        for _ in range(3):
            await asyncio.sleep(0)

    paced = Paced(lambda text: told.append((now[0], text)))
    paced.add("at once")
    assert told == [(1000.0, "at once")]
    written = "at once"
    for number in range(300):  # three seconds
        await pass_time(0.01)
        paced.add(f" {number}")
        written += f" {number}"
    times = [at for at, _ in told]
    assert all(later - at > 0.249 for at, later in itertools.pairwise(times))
    assert 12 <= len(told) <= 13
    await pass_time(0.25)
    assert "".join(text for _, text in told) == written
    await pass_time(5)
    paced.add("a word")
    assert told[-1] == (now[0], "a word")
    paced.add("too soon")
    paced.close()
    await pass_time(5)
    assert told[-1][1] == "a word"
