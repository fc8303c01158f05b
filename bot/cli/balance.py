"""`hark balance`: whether each message is accounted for, and what an owner accepts of what is not."""

from typing import TYPE_CHECKING

from pydantic_core import to_json

from bot.cli.local import FAILED, USAGE, asked, complain
from bot.config.model import Config
from bot.gateway.balance import Book, NotUnexplained, in_words

if TYPE_CHECKING:  # it imports the whole service
    from bot.service import Parts


async def show(as_json: bool, since: str, config: Config) -> int:
    """Print the book. Returns the exit code: 1 when something is not explained."""
    try:
        async with asked(config, _book) as there:
            book = await there.balance(since)
    except ValueError as error:
        complain(str(error))
        return USAGE
    if as_json:
        print(to_json(book, indent=2).decode())  # noqa: T201
    for one in () if as_json else book.accounts:
        print(f"{one.account}: {in_words(one)}")  # noqa: T201
        for lost in one.unexplained:
            print(f"  {lost.message}: {lost.why}")  # noqa: T201
    return FAILED if book.unexplained else 0


async def accept(message: str, config: Config) -> int:
    """Accept a message without an explanation. Returns the exit code: 1 when it is not one of those."""
    try:
        async with asked(config, _book) as there:
            book = await there.accept_message(message)
    except NotUnexplained as error:
        complain(str(error))
        return FAILED
    print(f"{message} is accepted; {len(book.unexplained)} more are not explained.")  # noqa: T201
    return 0


def _book(parts: "Parts") -> Book:
    return parts.book
