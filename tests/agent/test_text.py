"""Half surrogate pairs, which JSON allows and UTF-8 does not, never reach the store."""

from hypothesis import given
from hypothesis import strategies as st

from agent.text import well_formed

ANY_TEXT = st.text(st.characters(blacklist_categories=())) | st.text(st.sampled_from("a\ud83d\ude00\ud83d"))


@given(ANY_TEXT)
def test_every_text_can_be_stored(text: str) -> None:
    well_formed(text).encode()


@given(st.text())
def test_a_good_text_comes_back_as_it_is(text: str) -> None:
    assert well_formed(text) == text


def test_a_lone_half_becomes_the_replacement_character() -> None:
    assert well_formed("a\udc00b") == "a\ufffdb"
