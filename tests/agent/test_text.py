"""Half surrogate pairs, which JSON allows and UTF-8 does not, never reach the store."""

from hypothesis import given
from hypothesis import strategies as st

from agent.text import PairJoiner, well_formed

ANY_TEXT = st.text(st.characters(blacklist_categories=())) | st.text(st.sampled_from("a\ud83d\ude00\ud83d"))


@given(ANY_TEXT)
def test_every_text_can_be_stored(text: str) -> None:
    well_formed(text).encode()


@given(st.text())
def test_a_good_text_comes_back_as_it_is(text: str) -> None:
    assert well_formed(text) == text


@given(st.text(), st.integers(min_value=1, max_value=5))
def test_a_text_in_pieces_of_utf16_units_is_joined_again(text: str, size: int) -> None:
    raw = text.encode("utf-16-le")
    pieces = [raw[at : at + 2 * size].decode("utf-16-le", "surrogatepass") for at in range(0, len(raw), 2 * size)]
    joiner = PairJoiner()
    assert "".join(joiner.feed(piece) for piece in pieces) == text


def test_a_lone_half_becomes_the_replacement_character() -> None:
    assert well_formed("a\udc00b") == "a\ufffdb"
