"""Values from outside: lone halves of surrogate pairs are replaced wherever they stand, and all else stays as it is."""

from agent.message import Message, Text
from agent.text import cleaned


def test_a_value_without_lone_halves_is_returned_itself() -> None:
    value = Message("user", (Text("plain"), Text("Zoë 🏁")))
    assert cleaned(value) is value


def test_each_lone_half_is_replaced_and_no_pair_is_made_of_two_texts() -> None:
    value = Message("user", (Text("a\ud83c"), Text("\udfc1b"), Text("🏁\ud83c\udfc1")))
    assert cleaned(value) == Message("user", (Text("a\ufffd"), Text("\ufffdb"), Text("🏁🏁")))
    assert cleaned(("x", ("\ud800",))) == ("x", ("\ufffd",))
