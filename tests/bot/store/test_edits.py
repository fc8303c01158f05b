"""An edit replaces the words of a message that waits, if its author is let in."""

from dataclasses import replace
from pathlib import Path

from bot.persistence.inbox import AcceptedMessage
from channels.message import InboundKind
from tests.bot.store.opened import KEY, claim, message, opened
from tests.stored import Stored


async def test_an_edit_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    """Its author was let in when the message came, and is not any more."""
    async with opened(tmp_path) as store:
        asked = message("a question")
        edit = replace(asked, kind=InboundKind.EDIT, event_key="e:1", text="another")
        refused = AcceptedMessage(message=edit, session_key=None, state="dropped", reason="access")
        await store.inbox.accept([AcceptedMessage(message=asked, session_key=KEY), refused])
        assert (await claim(store)).messages[0].text == "a question"
        assert Stored(tmp_path).messages("reason") == [(None,), ("access",)]


async def test_an_edit_replaces_the_words_of_a_message_that_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        asked = message("a question")
        edit = replace(asked, kind=InboundKind.EDIT, event_key="e:1", text="another")
        for item in (asked, edit):
            await store.inbox.accept([AcceptedMessage(message=item, session_key=KEY)])
        assert (await claim(store)).messages[0].text == "another"
