"""The ways of asking: all sessions at once, or at a steady rate, and what the notes of both sides make of it."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence

from bench.model import Ask, Asked, Taken

SEED = 20_26


def fed(feed: Callable[[str], object], end: Callable[[], object], text: str, size: int) -> float:
    """CPU seconds of feeding a text in deltas of so many characters, its end included."""
    deltas = [text[at : at + size] for at in range(0, len(text), size)]
    begun = time.process_time()
    for delta in deltas:
        feed(delta)
    end()
    return time.process_time() - begun


async def at_once(ask: Ask, sessions: int, turns: int) -> list[Asked]:
    """So many sessions side by side, each asking again as soon as it was answered; about `turns` in all."""
    each = max(1, turns // sessions)

    async def talk(session: int) -> list[Asked]:
        return [await ask(session) for _ in range(each)]

    found = await asyncio.gather(*(talk(session) for session in range(sessions)))
    return [asked for row in found for asked in row]


async def one_by_one(ask: Ask, turns: int, pause: float) -> list[Asked]:
    """One session that asks again so many seconds after it was answered, as a person does who reads first."""
    asked = []
    for _ in range(turns):
        asked.append(await ask(0))
        await asyncio.sleep(pause)
    return asked


async def paced(ask: Ask, sessions: int, turns: int, rate: float) -> list[Asked]:
    """Questions at so many per second, at random moments as of many people, each in another session, in turn."""
    chance = random.Random(SEED)
    loop = asyncio.get_running_loop()
    at = loop.time()
    tasks: list[asyncio.Future[Asked]] = []
    for number in range(turns):
        at += chance.expovariate(rate)
        await asyncio.sleep(max(0.0, at - loop.time()))
        tasks.append(asyncio.ensure_future(ask(number % sessions)))
    return list(await asyncio.gather(*tasks))


def before(asked: Sequence[Asked], taken: Taken) -> list[float]:
    """Milliseconds from the question to its request at the model."""
    return [1000 * (taken.seen[one.number][0].arrived - one.sent) for one in asked]


def after(asked: Sequence[Asked], taken: Taken) -> list[float]:
    """Milliseconds from the last token sent to the complete answer."""
    return [1000 * (one.done - taken.seen[one.number][-1].said) for one in asked]
