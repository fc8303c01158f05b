"""The line that a person types into, and the live region above it, by prompt_toolkit.

Printed text goes above both, so that output while typing looks right. One reader at a time; printing may happen at
any time. Ctrl-C is a key here and not a signal: what it does is the caller's.
"""

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

from bot.telemetry import shapes
from bot.telemetry.redact import MASK

_STYLE = Style.from_dict({"prompt": "bold ansicyan", "placeholder": "ansibrightblack"})
# Seconds between redraws at least: smooth to the eye, and cheap.
_REDRAW = 0.03
# Seconds between them at most: the clock on the screen moves, and a hint of the prompt goes.
_TICK = 0.5
# Lines of the screen that the live region leaves to the prompt and to what is above.
_LINES_LEFT = 4


# Seconds after which an Esc is the key and not the beginning of another one's sequence.
_ESCAPE = 0.1
# Seconds in which a second Ctrl-C leaves.
_AGAIN = 2.0


class Prompt:
    """live: the text above the line (width, height → text with escape codes). on_stop: Esc, or Ctrl-C on an empty
    line. words: gives what Tab completes at the beginning of the line."""

    def __init__(
        self,
        history: Path,
        live: Callable[[int, int], str],
        on_stop: Callable[[], None],
        words: Callable[[], list[str]] = list,
    ) -> None:
        self._live = live
        self._on_stop = on_stop
        self._session: PromptSession[str] = PromptSession(
            self._message,
            style=_STYLE,
            history=_History(history, self.print),
            key_bindings=self._keys(),
            placeholder=self._placeholder,
            multiline=False,
            completer=WordCompleter(words, sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,  # a menu would need room below the line
            erase_when_done=True,  # what was typed is printed by the caller, in its place
            reserve_space_for_menu=0,
            refresh_interval=_TICK,
        )
        self._output = self._session.output
        self._drawn: tuple[int, StyleAndTextTuples] = (-1, [])
        self._armed_until = 0.0
        self._session.default_buffer.on_text_changed += lambda _: self._disarm()
        app = self._session.app
        app.timeoutlen = app.ttimeoutlen = _ESCAPE
        app.min_redraw_interval = _REDRAW

    @property
    def width(self) -> int:
        """Columns."""
        return self._output.get_size().columns

    async def read(self, default: str = "") -> str | None:
        """What the person types next; None at end-of-file. Raises KeyboardInterrupt when they want to leave."""
        try:
            return await self._session.prompt_async(default=default, handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError):  # OSError: the terminal is gone
            return None

    def keyboard(self) -> AbstractContextManager[None]:
        """Keys are kept as they are while the context lasts, also those that are pressed between two reads."""
        return self._session.input.raw_mode()

    def print(self, text: str) -> None:
        """Write above the prompt, for good.

        Not with prompt_toolkit's own `run_in_terminal`, which lets the kernel edit lines meanwhile: a Ctrl-D or
        Ctrl-C that is pressed then would be lost, or would be a signal.
        """
        app = self._session.app
        with contextlib.suppress(OSError):  # the terminal is gone: `read` finds out
            if app.is_running:
                app.renderer.erase()
            self._output.write_raw(text)
            self._output.flush()
            if app.is_running:
                app.renderer.request_absolute_cursor_position()
                app.invalidate()

    def refresh(self) -> None:
        """What is live has changed: it is drawn soon, once for many changes."""
        self._session.app.invalidate()

    def _message(self) -> StyleAndTextTuples:
        """What is live, made once per redraw, and the beginning of the line below it."""
        drawn = self._session.app.render_counter
        if self._drawn[0] != drawn:
            size = self._output.get_size()
            live = self._live(size.columns, max(size.rows - _LINES_LEFT, 1))
            self._drawn = (drawn, to_formatted_text(ANSI(f"{live}\n\n" if live else "")))
        return [*self._drawn[1], ("class:prompt", "> ")]

    def _placeholder(self) -> StyleAndTextTuples:
        return [("class:placeholder", "Ctrl-C again to leave" if self._is_armed else "")]

    @property
    def _is_armed(self) -> bool:
        """A Ctrl-C leaves."""
        return time.monotonic() < self._armed_until

    def _disarm(self) -> None:
        self._armed_until = 0.0

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        def interrupt(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            elif self._is_armed:
                event.app.exit(exception=KeyboardInterrupt())
            else:
                self._armed_until = time.monotonic() + _AGAIN
                self._on_stop()

        keys.add("escape")(lambda event: self._on_stop())
        keys.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        return keys


class _History(FileHistory):
    """What was typed before, in a file for its owner alone.

    What cannot be written is forgotten, so that a full disk does not eat the Enter that it came with. tell: says so,
    once.
    """

    def __init__(self, file: Path, tell: Callable[[str], None]) -> None:
        super().__init__(str(file))
        self._tell: Callable[[str], None] | None = tell
        with contextlib.suppress(OSError):
            file.touch(0o600)

    def store_string(self, string: str) -> None:
        """Keep a line, without keys that are known by their look, if that is possible."""
        try:
            super().store_string(shapes.replaced(string, MASK))
        except OSError as error:
            if self._tell:
                self._tell(f"What is typed cannot be kept for next time: {error.strerror}.\n\n")
            self._tell = None
