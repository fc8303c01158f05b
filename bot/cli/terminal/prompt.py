"""The line that a person types into, and the live region above it, by prompt_toolkit.

Printed text goes above both, so that output while typing looks right. One reader at a time; printing may happen at
any time. Ctrl-C is a key here and not a signal: what it does is the caller's.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import structlog
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Window
from prompt_toolkit.output import Output
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

log = structlog.get_logger()

_STYLE = Style.from_dict({"prompt": "bold ansicyan", "placeholder": "ansibrightblack"})
_REDRAW = 0.05
"""Seconds between redraws at least: smooth to the eye, and cheap."""
_LINES_LEFT = 4
"""Lines of the screen that the live region leaves to the prompt and to what is above."""


_ESCAPE = 0.1
"""Seconds after which an Esc is the key and not the beginning of another one's sequence."""
_AGAIN = 2.0
"""Seconds in which a second Ctrl-C leaves."""


class Prompt:
    """live: the text above the line (width, height → text with escape codes). on_stop: Esc, or Ctrl-C on an empty
    line. words: what Tab completes at the beginning of the line."""

    def __init__(
        self,
        history: Path | None,
        live: Callable[[int, int], str],
        on_stop: Callable[[], None],
        words: Sequence[str] = (),
    ) -> None:
        self._live = live
        self._on_stop = on_stop
        self._session: PromptSession[str] = PromptSession(
            "> ",
            style=_STYLE,
            history=_history(history),
            key_bindings=self._keys(),
            placeholder=self._placeholder,
            multiline=False,
            completer=WordCompleter(list(words), sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,  # a menu would need room below the line
            erase_when_done=True,  # what was typed is printed by the caller, in its place
            reserve_space_for_menu=0,
        )
        self._drawn = (-1, "")
        self._due: asyncio.TimerHandle | None = None
        self._armed: asyncio.TimerHandle | None = None
        self._session.default_buffer.on_text_changed += lambda _: self._disarm()
        app = self._session.app
        app.timeoutlen = app.ttimeoutlen = _ESCAPE
        region = Window(FormattedTextControl(self._region), dont_extend_height=True, wrap_lines=False)
        shown = ConditionalContainer(region, Condition(lambda: bool(self._text())))
        app.layout.container = HSplit([shown, app.layout.container])

    @property
    def output(self) -> Output:
        """The terminal."""
        return self._session.output

    @property
    def width(self) -> int:
        """Columns."""
        return self.output.get_size().columns

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
            self.output.write_raw(text)
            self.output.flush()
            if app.is_running:
                app.renderer.request_absolute_cursor_position()
                app.invalidate()

    def refresh(self) -> None:
        """What is live has changed: it is drawn soon, once for many changes."""
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(_REDRAW, self._redraw)

    def _redraw(self) -> None:
        self._due = None
        if self._session.app.is_running:
            self._session.app.invalidate()

    def _text(self) -> str:
        """What is live, made once per redraw."""
        drawn = self._session.app.render_counter
        if self._drawn[0] != drawn:
            size = self.output.get_size()
            self._drawn = (drawn, self._live(size.columns, max(size.rows - _LINES_LEFT, 1)))
        return self._drawn[1]

    def _region(self) -> ANSI:
        return ANSI(f"{self._text()}\n")

    def _placeholder(self) -> StyleAndTextTuples:
        return [("class:placeholder", "Ctrl-C again to leave" if self._armed else "")]

    def _disarm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
            self.refresh()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        def interrupt(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            elif self._armed:
                event.app.exit(exception=KeyboardInterrupt())
            else:
                self._armed = asyncio.get_running_loop().call_later(_AGAIN, self._disarm)
                self._on_stop()

        @keys.add("escape")
        def stop(event: KeyPressEvent) -> None:
            self._on_stop()

        @keys.add("escape", "enter")
        def new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        return keys


def _history(file: Path | None) -> History:
    """What was typed before, in a file for its owner alone; for this terminal only where that cannot be."""
    if file is None:
        return InMemoryHistory()
    try:
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600))
    except OSError:
        return InMemoryHistory()
    return _Forgetful(str(file))


class _Forgetful(FileHistory):
    """A history that forgets what cannot be written, so that a full disk does not eat the Enter that it came with."""

    _failed = False

    def store_string(self, string: str) -> None:
        """Keep a line, if that is possible."""
        try:
            super().store_string(string)
        except OSError as error:
            if not self._failed:
                self._failed = True
                log.warning("what is typed cannot be kept for later", file=self.filename, reason=error.strerror)
