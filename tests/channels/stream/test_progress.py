"""Every cut takes something away from what is left: no text keeps the chunker cutting for ever."""

import random

import pytest

from channels.outgoing import ReplyBlock
from channels.stream.chunker import Chunker
from channels.stream.outline import Cut

PIECES = [
    *("_", "</details>", "<details>", "\u2028", "[", "]", "(", ")", ":", "H", ".", ",", "!", "~", "|", "\t", "#", "&"),
    *("$$", "\n", "\n\n", "<", ">", "word", "`", "```", "```py\n", "*", "**", "-", "\xa0", "\u3000", "😀", "。", "\r"),
    *(" ", "  ", "- item\n", "> ", "| a | b |\n|---|---|\n", "x" * 20, "[w][l]", "\n[l]: http://x.y\n"),
]
# Texts at which it did not end.
ENDLESS = (
    (
        8,
        24,
        48,
        "cut here",
        "_</details>\u2028  [  :HH.,HEARTBEAT_OK!MEDIA: a.png~|(N\t)#_REPLY/approve </details>&$$\nMEDIA: a",
    ),
    (16, 16, 16, "> q\n> ", "EAT_OK,😀\r<.\u00a0[~" + "x" * 20),
)


class Counting(Chunker):
    """Fails instead of going on for ever."""

    cuts = 0

    def _cut(self, cut: Cut) -> list[ReplyBlock]:
        self.cuts += 1
        assert self.cuts < 500, "it does not end"
        return super()._cut(cut)


def cut(least: int, most: int, whole: int, after: str, text: str, *, joined: bool, size: int) -> str:
    """What all blocks of a text say, fed in pieces of a size."""
    chunker = Counting(least, most, whole, after, joined=joined)
    blocks = [block for at in range(0, len(text), size) for block in chunker.feed(text[at : at + size])]
    return "".join(block.said for block in [*blocks, *chunker.end()])


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize(("least", "most", "whole", "after", "text"), ENDLESS, ids=["unusual", "hard"])
def test_white_space_that_is_cut_off_does_not_come_back(
    least: int, most: int, whole: int, after: str, text: str, joined: bool
) -> None:
    assert text.startswith(cut(least, most, whole, after, text, joined=joined, size=len(text)))


@pytest.mark.parametrize("seed", range(60))
def test_any_text_comes_to_its_end(seed: int) -> None:
    """The seed is the name of the case."""
    chance = random.Random(seed)
    text = "".join(chance.choices(PIECES, k=chance.randrange(1, 60)))
    limits = chance.choice([(8, 24, 48), (16, 16, 16), (20, 64, 96), (30, 60, 200)])
    after = chance.choice(["", "cut here", "```py\nx", "> q\n> "])
    said = cut(*limits, after, text, joined=chance.random() < 0.5, size=chance.randrange(1, 12))
    assert text.startswith(said)
