"""What is asked of a store about people: who was let in or shut out, and who waits for that."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from bot.persistence.values import OwnerNotice, Person, Settled, Standing
from channels.message import ChatMoved
from channels.outgoing import Delivery, Planned


class People(Protocol):
    """Who may write, as far as the configuration does not say it."""

    async def known(self) -> tuple[Sequence[Person], Sequence[ChatMoved]]:
        """Everybody of whom something is stored, and every chat that moved, in the order in which they did."""

    async def pending(self) -> Sequence[Person]:
        """Who has a code that is still good, oldest first."""

    async def tell(self, notice: Callable[[Sequence[Person]], OwnerNotice]) -> tuple[Delivery, ...]:
        """Tell an owner who has got a code since they were told last, unless that is less than an hour ago."""

    async def settle(
        self, code: str, standing: Standing, tell: Callable[[str], Sequence[Planned]], by: str = ""
    ) -> Settled | None:
        """Let in (allowed, owner) or shut out (blocked) who was given the code with this digest; None: there is none.

        Once. What they had written is accepted, or dropped. tell: makes what somebody who is let in is told, by the
        name of their channel. by: who says so, as "channel:id".
        """

    async def stand(
        self,
        channel: str,
        sender: str,
        standing: Literal["owner", "blocked"] | None,
        tell: Callable[[str], Sequence[Planned]],
        by: str,
    ) -> Settled | None:
        """Make somebody an owner, shut them out, or forget what is stored of them (None), on all accounts of a channel.

        Of an owner to be, what was held is accepted. Of others it ends what they alone asked for and drops what waits:
        everywhere when they are shut out, else in direct conversations. None: there is nothing to be forgotten.
        """
