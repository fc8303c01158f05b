"""Text from outside is well-formed: surrogate halves, which JSON allows and UTF-8 does not, are replaced everywhere."""

from hypothesis import given
from hypothesis import strategies as st

from agent.message import Message, Text, cleaned, well_formed

ANY_TEXT = st.text(st.characters(blacklist_categories=())) | st.text(st.sampled_from("a\ud83d\ude00\ud83d"))


@given(ANY_TEXT)
def test_every_text_can_be_stored(text: str) -> None:
    well_formed(text).encode()


@given(st.text())
def test_a_good_text_comes_back_as_it_is(text: str) -> None:
    assert well_formed(text) == text


def test_a_lone_half_becomes_the_replacement_character() -> None:
    assert well_formed("a\udc00b") == "a\ufffdb"


def test_a_value_without_lone_halves_is_returned_itself() -> None:
    value = Message("user", (Text("plain"), Text("Zoë 🏁")))
    assert cleaned(value) is value


def test_each_lone_half_is_replaced_and_no_pair_is_made_of_two_texts() -> None:
    value = Message("user", (Text("a\ud83c"), Text("\udfc1b"), Text("🏁\ud83c\udfc1")))
    assert cleaned(value) == Message("user", (Text("a\ufffd"), Text("\ufffdb"), Text("🏁🏁")))
    assert cleaned(("x", ("\ud800",))) == ("x", ("\ufffd",))
