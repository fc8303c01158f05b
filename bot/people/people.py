"""Knows in memory who is an owner, who was let in by a pairing code, who is blocked, and former ids of chats.

The store holds the same durably. `People` is loaded from the store before messages are accepted, and is told of every
change, so that each message can be judged without awaiting.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from bot.people.access import LOCAL, OWNER, LetInBy, is_trusted
from bot.persistence.people import Person
from bot.store.store import Store
from channels.message import ChatMoved, InboundMessage, Origin, Place

# The name of the owners whom the terminal, the socket or the token vouches for, and for whom heartbeat turns are.
_LOCAL = f"http:{OWNER}"


class People:
    """The people and chats that the bot knows. "channel:id" names a person.

    owners: the owners that the configuration names, each as "channel:id". links: the name of each person with several
    ids, by these.
    """

    def __init__(self, store: Store, owners: Collection[str], links: Mapping[str, str] | None = None) -> None:
        self._store = store
        self._links = links or {}
        # The owners of the configuration, who stay owners whatever the store says.
        self.configured = tuple(dict.fromkeys(owners))
        # All owners: these, and those whom an owner has made one.
        self._owners = dict.fromkeys(owners)
        # Those who were made owners, also when the configuration names them.
        self._made: set[str] = set()
        self._paired: set[tuple[str, str, str]] = set()
        self._blocked: set[str] = set()
        # Former ids of a chat, the newest first, by its present channel, account and id.
        self._former: dict[tuple[str, str, str], tuple[str, ...]] = {}
        # Grows with every change, so that others know when cached answers are outdated.
        self.revision = 0

    async def load(self) -> None:
        """Load people and moved chats from the store. Raises StoreUnavailable."""
        people, chats = await self._store.people.known()
        for person in people:
            if person.standing in ("allowed", "owner"):
                self.let_in(person)
            elif person.standing == "blocked" and not person.account:
                self.shut_out(f"{person.channel}:{person.sender}", blocked=True)
        for moved in chats:
            self.follow(moved)

    def configure(self, owners: Collection[str]) -> None:
        """Take over the owners of another configuration. Whom an owner has made one stays it."""
        self.revision += 1
        made = [one for one in self._owners if one in self._made]
        self.configured = tuple(dict.fromkeys(owners))
        self._owners = dict.fromkeys((*self.configured, *made))
        self._blocked -= set(self.configured)

    def let_in(self, person: Person) -> None:
        """Let a person write to the account, as an owner if that is their standing."""
        self.revision += 1
        self._paired.add((person.channel, person.account, person.sender))
        if person.standing == "owner":
            self._owners[f"{person.channel}:{person.sender}"] = None
            self._made.add(f"{person.channel}:{person.sender}")
        if person.standing == "owner" or not person.account:
            self._blocked.discard(f"{person.channel}:{person.sender}")

    def shut_out(self, who: str, *, blocked: bool) -> Callable[[], None]:
        """Forget that a person, named as "channel:id", was let in or made an owner; the configuration still counts.

        blocked: refuse the person even where something else would let them in. Returns a function that undoes all this.
        """
        self.revision += 1
        gone = {one for one in self._paired if f"{one[0]}:{one[2]}" == who}
        owned, made, was_blocked = self.owns(who), who in self._made, who in self._blocked
        self._paired -= gone
        self._made.discard(who)
        if who not in self.configured:
            self._owners.pop(who, None)
            self._blocked = self._blocked - {who} | ({who} if blocked else set())

        def take_back() -> None:
            self.revision += 1
            self._paired |= gone
            self._owners |= {who: None} if owned else {}
            self._made |= {who} if made else set()
            self._blocked = self._blocked - {who} | ({who} if was_blocked else set())

        return take_back

    def follow(self, moved: ChatMoved) -> None:
        """Note that a chat has a new id."""
        old, new = ((moved.channel, moved.account, chat) for chat in (moved.old_chat, moved.new_chat))
        if moved.old_chat not in self.chats(*new):  # both chats and refused sends report a move
            self._former[new] = self.chats(*old)
            self.revision += 1

    def chats(self, channel: str, account: str, chat: str) -> tuple[str, ...]:
        """Return all ids of a chat, its present id first; its first id, which names its session, is last."""
        return chat, *self._former.get((channel, account, chat), ())

    @property
    def owners(self) -> Sequence[tuple[str, str]]:
        """The channel and id of each owner."""
        return [(channel, sender) for channel, _, sender in (owner.partition(":") for owner in self._owners)]

    def owns(self, name: str) -> bool:
        """Return whether the person named as "channel:id" is an owner."""
        return name in self._owners

    @property
    def owner_names(self) -> Sequence[str]:
        """Return the names of all owners, as `share_of` takes them."""
        return (_LOCAL, *self._owners)

    def share_of(self, names: Sequence[str]) -> str:
        """Return whose share of the places (`agent/shares`) serves those who wrote, each named as "channel:id".

        That is an owner's if one of them is an owner, else the first guest's. A guest with several ids is one guest,
        and so are all programs that have neither the token nor the socket.
        """
        if any(name in self._owners or name == _LOCAL or name.startswith("console:") for name in names):
            return ""
        return f"person {self._links[names[0]]}" if names[0] in self._links else names[0]

    def has_guests(self, channel: str) -> bool:
        """Return whether somebody who is no owner was let in by a code on a channel."""
        return any(name == channel and not self.owns(f"{name}:{sender}") for name, _, sender in self._paired)

    def is_owner(self, message: InboundMessage) -> bool:
        """Return whether an owner wrote a message; whoever has the terminal, the socket or the token counts as one."""
        origin = message.origin
        if origin.place.kind in LOCAL:
            return is_trusted(message)
        return f"{origin.place.channel}:{origin.sender}" in self._owners and not origin.by_bot

    def is_blocked(self, origin: Origin) -> bool:
        """Return whether an owner has blocked the sender, which counts more than anything that lets them in."""
        return f"{origin.place.channel}:{origin.sender}" in self._blocked and origin.place.kind not in LOCAL

    def let_in_by(self, origin: Origin) -> LetInBy:
        """Return how the sender was let in to this account."""
        channel = origin.place.channel
        if (channel, "", origin.sender) in self._paired:
            return "order"
        return "code" if (channel, origin.place.account, origin.sender) in self._paired else ""


def chat_of(place: Place) -> tuple[str, str, str]:
    """Return the channel, account and chat id of a place, which together name a chat."""
    return place.channel, place.account, place.chat
