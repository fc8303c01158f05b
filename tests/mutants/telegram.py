"""What Telegram sends."""

from tests.mutants import Fault

_TESTS = "tests/wire/test_telegram_channel.py::test_"

FAULTS = (
    Fault(
        "telegram/unreadable-updates-dropped",
        "channels/telegram/poll.py",
        "return [unread(update, me, error)]",
        "return []",
        (f"{_TESTS}an_update_that_cannot_be_read_is_kept_and_passed_over",),
    ),
    Fault(
        "telegram/offset-moves-before-the-store-has-the-batch",
        "channels/telegram/poll.py",
        "        if updates:\n            await self._accept(",
        "        self._offset = offset or self._offset\n        if updates:\n            await self._accept(",
        (f"{_TESTS}what_cannot_be_stored_is_not_confirmed_and_comes_again",),
    ),
    Fault(
        "telegram/offset-not-stored",
        "channels/telegram/poll.py",
        "None if offset is None else Mark(scope, str(offset))",
        "None",
        (f"{_TESTS}a_restart_goes_on_from_the_mark",),
    ),
)
