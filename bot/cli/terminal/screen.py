"""Pieces of a conversation as text for a terminal: Markdown by rich, everything else in one quiet style.

Returns strings and writes nothing. What a model or a tool wrote can move no cursor and change no title: control
characters are taken out of every text first. Addresses are written out, never hidden behind words.
"""

import re
from typing import Literal

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.styled import Styled
from rich.text import Text
from rich.theme import Theme

from bot.cli.terminal.view import Live, Piece, Tone, clean
from bot.speech import spoken

_FILLING = re.compile(r"(?<! )[ ]+((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
_THEME = Theme({"markdown.code": "cyan", "markdown.code_block": "none", "markdown.block_quote": "italic"})
_THINKING_LINES = 3
# Characters of a live answer that are worth rendering again and again; past that only its end is shown, plain.
_PREVIEW = 20_000


class Screen:
    """Renders for one terminal. colours: a colour system of rich, auto for that of this process's; None for none."""

    def __init__(self, colours: Literal["auto", "256", "truecolor"] | None = "auto") -> None:
        self._console = Console(
            force_terminal=True, color_system=colours, theme=_THEME, highlight=False, legacy_windows=False
        )
        self._after_tool = False

    def piece(self, piece: Piece, width: int) -> str:
        """Something to be printed for good, with the empty line that sets it apart."""
        text = clean(piece.text)
        match piece.tone:
            case Tone.TOOL | Tone.FAILED_TOOL:
                self._after_tool = True
                mark = "✓" if piece.tone is Tone.TOOL else "✗"
                return self._render(Text(f"  {mark} {text}", "dim"), width)
            case Tone.ASKED:
                typed = text.replace("\n", "\n  ")
                return self._apart(Text.assemble(("> ", "bold cyan"), (typed, "bold")), width)
            case Tone.SAID:
                return self._apart(_markdown(text), width)
            case Tone.HEADING:
                return self._apart(Text(f"── {text} ──", "dim"), width)
            case Tone.UNSAID:
                return self._apart(Styled(_markdown(text), "dim"), width)
            case Tone.ASIDE:
                return self._apart(Text(text, "dim"), width)

    def status(self, text: str, width: int) -> str:
        """The line above the prompt while nothing is going on."""
        return self._render(Text(clean(text), "dim", overflow="ellipsis", no_wrap=True), width).rstrip("\n")

    def live(self, live: Live, width: int, height: int, now: int) -> str:
        """What is going on, in at most height lines: the end of it, when it is longer. now: milliseconds."""
        parts = []
        text = clean(live.text)
        if len(text) > _PREVIEW:
            parts.append(self._render(Text(text[-_PREVIEW // 10 :]), width))
        elif text.strip():
            parts.append(self._render(_markdown(spoken(text)), width))
        thinking = self._render(Text(clean(live.thinking).strip(), "dim italic"), width).splitlines()
        parts += [f"{line}\n" for line in thinking[-_THINKING_LINES:] if live.thinking.strip()]
        parts += [self._render(Text(f"  … {clean(tool)}", "dim"), width) for tool in live.tools]
        if not text.strip():
            seconds = max(0, now - live.since) // 1000
            doing = "thinking" if live.thinking.strip() else "working"
            parts.append(self._render(Text(f"{doing} … {seconds} s", "dim"), width))
        lines = "".join(parts).splitlines()
        return "\n".join(lines[-height:])

    def _apart(self, renderable: RenderableType, width: int) -> str:
        above, self._after_tool = "\n" if self._after_tool else "", False
        return f"{above}{self._render(renderable, width)}\n"

    def _render(self, renderable: RenderableType, width: int) -> str:
        self._console.width = max(width, 20)
        with self._console.capture() as captured:
            self._console.print(renderable)
        # rich fills lines to the full width, and such lines wrap when the terminal is made narrower
        return _FILLING.sub(r"\1", captured.get())


def _markdown(text: str) -> Markdown:
    """Line breaks stay as they were written: people and models mean them, also where Markdown does not."""
    markdown = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    for token in markdown.parsed:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return markdown
