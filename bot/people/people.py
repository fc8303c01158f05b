"""Who is who, asked for each message without awaiting: owners, who was let in by a code, who is shut out, and where
chats were before.

The store has it; this is loaded before intake begins and follows every change.
"""

from collections.abc import Callable, Collection, Sequence

from bot.people.access import LOCAL, is_trusted
from bot.persistence.people import Person
from bot.store.store import Store
from channels.message import ChatMoved, InboundMessage, Origin, Place


class People:
    """owners: of the configuration, "channel:id" of each; configured holds them. revision: grows with every change, so
    that what others keep of the answers can be known to be old."""

    def __init__(self, store: Store, owners: Collection[str]) -> None:
        self._store = store
        self.configured = tuple(dict.fromkeys(owners))
        self._owners = dict.fromkeys(owners)
        self._paired: set[tuple[str, str, str]] = set()
        self._blocked: set[str] = set()
        self._former: dict[tuple[str, str, str], tuple[str, ...]] = {}
        self.revision = 0

    async def load(self) -> None:
        """Read what the store knows. Raises StoreUnavailable."""
        people, chats = await self._store.people.known()
        for person in people:
            if person.standing in ("allowed", "owner"):
                self.let_in(person)
            elif person.standing == "blocked" and not person.account:
                self.shut_out(f"{person.channel}:{person.sender}", blocked=True)
        for moved in chats:
            self.follow(moved)

    def let_in(self, person: Person) -> None:
        """Somebody may write from now on, as an owner if they are made one."""
        self.revision += 1
        self._paired.add((person.channel, person.account, person.sender))
        if person.standing == "owner":
            self._owners[f"{person.channel}:{person.sender}"] = None
            self._blocked.discard(f"{person.channel}:{person.sender}")

    def shut_out(self, who: str, *, blocked: bool) -> Callable[[], None]:
        """Nothing that was said of "channel:id" counts any more, but that of the configuration; blocked: whatever else
        lets them in. Returns what takes that back."""
        self.revision += 1
        gone = {one for one in self._paired if f"{one[0]}:{one[2]}" == who}
        owned, was_blocked = self.owns(who), who in self._blocked
        self._paired -= gone
        if who not in self.configured:
            self._owners.pop(who, None)
            self._blocked = self._blocked - {who} | ({who} if blocked else set())

        def take_back() -> None:
            self.revision += 1
            self._paired |= gone
            self._owners |= {who: None} if owned else {}
            self._blocked = self._blocked - {who} | ({who} if was_blocked else set())

        return take_back

    def follow(self, moved: ChatMoved) -> None:
        """A chat has another id from now on."""
        old, new = ((moved.channel, moved.account, chat) for chat in (moved.old_chat, moved.new_chat))
        if moved.old_chat not in self.chats(*new):  # told by both chats, and by refused sends
            self._former[new] = self.chats(*old)
            self.revision += 1

    def chats(self, channel: str, account: str, chat: str) -> tuple[str, ...]:
        """All ids of a chat, the present one first; that of its beginning, which names its session, last."""
        return chat, *self._former.get((channel, account, chat), ())

    @property
    def owners(self) -> Sequence[tuple[str, str]]:
        """Channel and id of each."""
        return [(channel, sender) for channel, _, sender in (owner.partition(":") for owner in self._owners)]

    def owns(self, name: str) -> bool:
        """Whether "channel:id" is an owner."""
        return name in self._owners

    def has_guests(self, channel: str) -> bool:
        """Whether somebody was let in by a code there who is no owner."""
        return any(name == channel and not self.owns(f"{name}:{sender}") for name, _, sender in self._paired)

    def is_owner(self, message: InboundMessage) -> bool:
        """Whether a message is by an owner: one of those, or whoever has the terminal, the socket or the token."""
        origin = message.origin
        if origin.place.kind in LOCAL:
            return is_trusted(message)
        return f"{origin.place.channel}:{origin.sender}" in self._owners and not origin.by_bot

    def is_blocked(self, origin: Origin) -> bool:
        """Whether an owner has shut the sender out, in whatever way they would get in."""
        return f"{origin.place.channel}:{origin.sender}" in self._blocked and origin.place.kind not in LOCAL

    def is_paired(self, origin: Origin) -> bool:
        """Whether the sender was let in by a code, to this account."""
        return (origin.place.channel, origin.place.account, origin.sender) in self._paired


def chat_of(place: Place) -> tuple[str, str, str]:
    """What names a chat."""
    return place.channel, place.account, place.chat
