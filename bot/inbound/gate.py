"""Whether what was said in a group is for the bot: a pure decision. If it cannot tell, the gate stays shut.

For what does not name the bot this is what the configuration says; `/activation` can say otherwise in a session.

| what was said | is for it |
| --- | --- |
| names the bot, or replies to it; a click, a native command; `!name` of a command it has | always |
| `/approve ID` and `/answer ID`, which name something of its own | always |
| names somebody else, or is a `/command@another_bot` | never |
| anything, where `require_mention` is false | always |
| words that one of `mention_patterns` fits | always |
| in a thread | if it takes part there (`threads.follow`), which the store knows |
| anything else | never |

Of what came in several messages (an album, a long paste) all is for it where one part is; the store knows the others.
"""

import functools
import re

from bot.persistence.inbox import Follows
from channels.message import InboundKind, InboundMessage
from channels.settings import AccountSection, Group

_OF_ITS_OWN = re.compile(r"\s*(?:!|/(?:approve|answer)\s)")
_OF_ANOTHER = re.compile(r"/\w+@\w")


def gate(message: InboundMessage, account: AccountSection, group: Group, is_command: bool) -> bool | Follows:
    """Whether a message in a group, a channel or a thread is for the bot, or what decides that (`Follows`).

    is_command: it has a command of that name.
    """
    addressed = message.mentioned or (message.replied is not None and message.replied.by_me)
    if message.kind is not InboundKind.MESSAGE or addressed or (is_command and _OF_ITS_OWN.match(message.text)):
        return True
    if message.names_others or of_another(message):
        return False
    if any(_pattern(one).search(message.text) for one in account.groups.mention_patterns):
        return True
    if not group.require_mention:
        return "open"
    follow = account.threads.follow
    return follow if message.origin.place.thread and follow != "never" else "shut"


def of_another(message: InboundMessage) -> bool:
    """Return whether a message is a command for another bot, whoever reads it."""
    return message.kind is InboundKind.MESSAGE and _OF_ANOTHER.match(message.text) is not None


@functools.cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
