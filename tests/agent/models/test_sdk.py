"""The decoder of server-sent events."""

from hypothesis import given
from hypothesis import strategies as st

from agent.models.sdk import Decoder, Event


def decoded(body: bytes, size: int) -> list[Event]:
    decoder = Decoder()
    found = [event for at in range(0, len(body), size) for event in decoder.feed(body[at : at + size])]
    return found + decoder.end()


BODY = (
    b": a comment\n\nevent: ping\ndata: {}\n\nid: 7\nretry: 10\ndata:one\ndata: two\n\n"
    b"event: nothing\n\ndata: \xe2\x9c\x93 caf\xc3\xa9\n\ndata\n\n"
)
EVENTS: list[Event] = [("ping", "{}"), ("", "one\ntwo"), ("", "✓ café"), ("", "")]


def test_fields_comments_and_events_without_data() -> None:
    assert decoded(BODY, 4096) == EVENTS


def test_any_slice_size_and_line_end_gives_the_same_events() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        for size in (1, 2, 7, 4096):
            assert decoded(BODY.replace(b"\n", end), size) == EVENTS, (end, size)


def test_a_byte_order_mark_at_the_start_is_no_part_of_a_field() -> None:
    for size in (1, 2, 7, 4096):
        assert decoded(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", size) == [("", "a")]


def test_an_event_without_its_blank_line_is_not_lost() -> None:
    assert decoded(b"data: a\n\ndata: b", 3) == [("", "a"), ("", "b")]
    assert decoded(b"data: a\n\ndata: b\r", 3) == [("", "a"), ("", "b")]


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\n") == [("", "a")]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.integers(1, 9))
def test_what_goes_in_comes_out(texts: list[str], size: int) -> None:
    body = "".join(f"event: e\r\ndata: {text}\r\n\r\n" for text in texts).encode()
    assert decoded(body, size) == [("e", text) for text in texts]
