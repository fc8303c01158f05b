"""Which settings of a group hold where a message was said."""

from bot.people.people import People, chat_of
from channels.message import ChatKind, InboundMessage
from channels.settings import AccountSection, Group


def group_of(account: AccountSection | None, people: People, message: InboundMessage) -> Group | None:
    """What holds where a message was said; None in direct messages, and where the bot is not to answer."""
    origin = message.origin
    if account is None or origin.place.kind is ChatKind.DIRECT:
        return None
    return account.groups.of(*people.chats(*chat_of(origin.place)), origin.space)
