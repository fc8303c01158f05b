"""However much a process writes, its head and its tail are kept and the rest is counted."""

from hypothesis import given
from hypothesis import strategies as st

from agent.tools.output import HeadAndTail
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
