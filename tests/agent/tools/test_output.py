"""Long output keeps head and tail, counts the rest, is kept whole in a file, and is published at a bounded pace."""

import asyncio
import itertools
import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.output import (
    FOLDER,
    HEAD_BYTES,
    MAX_AGE_SECONDS,
    MAX_FILE_BYTES,
    MAX_FILES,
    TAIL_BYTES,
    HeadAndTail,
    Overflow,
    Paced,
)
from agent.tools.workspace import Workspace
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


LINES = b"".join(b"line %d\n" % number for number in range(10_000))


def kept(root: Path) -> list[Path]:
    return sorted((root / FOLDER).glob("*.txt"))


async def test_short_results_stay_and_leave_no_file(tmp_path: Path) -> None:
    text = "é" * ((HEAD_BYTES + TAIL_BYTES) // 2)
    assert await Overflow(Workspace(tmp_path)).keep("turn-call", text) == text
    assert os.listdir(tmp_path) == []


async def test_long_results_keep_head_and_tail_and_say_where_the_whole_is(tmp_path: Path) -> None:
    result = await Overflow(Workspace(tmp_path)).keep("turn/../call", LINES.decode())
    (file,) = kept(tmp_path)
    assert file.read_bytes() == LINES
    head, _, rest = result.partition("\n[… ")
    note, _, tail = rest.partition(" …]\n")
    assert LINES.startswith(head.encode())
    assert LINES.endswith(tail.encode())
    assert (len(head), len(tail)) == (HEAD_BYTES, TAIL_BYTES)
    line = head.count("\n") + 1
    left_out = len(LINES) - HEAD_BYTES - TAIL_BYTES
    assert note == f"{left_out:,} bytes left out; all of it is in {FOLDER}/{file.name}: read it with offset {line}"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert (file.parent / ".gitignore").read_text() == "*\n"


async def test_names_never_meet(tmp_path: Path) -> None:
    overflow = Overflow(Workspace(tmp_path))
    for name in ("a/b", "a-b", "a\x00b", "a\ud800b", "x" * 500, "x" * 501):
        await overflow.keep(name, LINES.decode())
    assert len(kept(tmp_path)) == 6
    assert all(file.read_bytes() == LINES for file in kept(tmp_path))


def test_output_in_pieces_is_all_there_whenever_it_is_asked_for(tmp_path: Path) -> None:
    output = Overflow(Workspace(tmp_path)).spill("call")
    for end in range(100, 40_001, 100):
        output.add(LINES[end - 100 : end])
        if end <= HEAD_BYTES + TAIL_BYTES:
            assert not kept(tmp_path)
        elif end % 3000 == 0:
            assert f"all of it is in {FOLDER}/" in output.text()
            assert kept(tmp_path)[0].read_bytes() == LINES[:end]
    assert output.text().encode().endswith(LINES[40_000 - TAIL_BYTES : 40_000])


def test_endless_output_is_bounded_in_memory_and_on_disk(tmp_path: Path) -> None:
    output = Overflow(Workspace(tmp_path)).spill("call")
    for _ in range(MAX_FILE_BYTES // 100_000 + 5):
        output.add(b"y" * 100_000)
        assert held_by(output) < 300_000
    assert f"the first {MAX_FILE_BYTES:,} are in {FOLDER}/" in output.text()
    assert kept(tmp_path)[0].stat().st_size == MAX_FILE_BYTES


async def test_old_results_go_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    now = time.time()
    for number in range(MAX_FILES + 3):
        (folder / f"{number}.txt").touch()
        os.utime(folder / f"{number}.txt", (now - number, now - number))
    for name, age in (("old.txt", MAX_AGE_SECONDS + 60), ("old.md", MAX_AGE_SECONDS + 60)):
        (folder / name).touch()
        os.utime(folder / name, (now - age, now - age))
    await Overflow(Workspace(tmp_path)).keep("new", LINES.decode())
    assert len(kept(tmp_path)) == MAX_FILES
    assert {"0.txt", f"{MAX_FILES - 2}.txt", "old.md"} <= {path.name for path in folder.iterdir()}
    assert not (folder / f"{MAX_FILES - 1}.txt").exists()
    assert not (folder / "old.txt").exists()


async def test_one_old_result_goes_though_there_is_room(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    old = tmp_path / FOLDER / "old.txt"
    old.touch()
    os.utime(old, (0, time.time() - MAX_AGE_SECONDS - 60))
    await Overflow(Workspace(tmp_path)).keep("new", LINES.decode())
    assert not old.exists()


@pytest.mark.parametrize("obstacle", ["link", "file"])
async def test_what_cannot_be_kept_fails_no_call_and_is_said(tmp_path: Path, obstacle: str) -> None:
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    if obstacle == "link":
        (root / FOLDER).symlink_to(outside)
    else:
        (root / FOLDER).touch()
    result = await Overflow(Workspace(root)).keep("call", LINES.decode())
    assert f"could not be kept ({FOLDER}: is " in result
    assert result.encode().startswith(LINES[:100])
    assert result.encode().endswith(LINES[-100:])
    assert os.listdir(outside) == []
