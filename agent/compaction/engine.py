"""The context engine: decides before each model call and after each turn what of a conversation is sent.

When a request no longer fits, old results of tools are shortened; then the older part is summed up by a model; and only
where that failed whole turns are dropped, with a line that says so. A request is as large as the provider counted the
last one, and what came since as estimated, where the estimate is corrected by what the model counted before.
"""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import replace
from enum import StrEnum

import structlog

from agent.compaction import summary
from agent.compaction.flush import ENDS, SUMMED_UP, can_flush, flush
from agent.context import Context, shown_tokens
from agent.errors import BudgetReached, ErrorKind, ModelError
from agent.journal import Journal
from agent.message import Message, Usage, estimate, estimate_text, estimate_tools
from agent.models.base import Answer, ModelClient, ModelRequest
from agent.models.fleet import Route
from agent.models.protocol import without_images
from agent.spec import RunSpec

log = structlog.get_logger()

# Seconds after which people are told that a conversation is being summed up.
TOLD_AFTER = 10.0
# Turns that are kept word for word in any case where they fit into half the window.
_LEAST_TURNS = 3
# A part that takes less of what a request may have is not worth a summary.
_WORTH = 0.1
# How much larger a request must be than one that could not be made smaller, before that is tried again.
_GROWN = 1.25
# How large a request may be, compared with one that a provider found too large.
_SMALLER = 0.7
# Words of a summary, and for each try how much of the window its request may take.
_WORDS, _TRIES = 1200, (1.0, 0.6, 0.35)
# How much of the window people's words in a summary may take, and as much again its identifiers.
_QUOTED = 0.05


class Compacted(StrEnum):
    """What became of a compaction."""

    DONE = "done"
    TOO_LITTLE = "too little"
    FAILED = "failed"


class ContextEngine:
    """Keeps the requests of one conversation within the window of the model that is asked."""

    def __init__(self, spec: RunSpec, context: Context, journal: Journal | None = None) -> None:
        """journal: of the run; without one, the model saves no notes before a summary."""
        self._spec, self._context, self._journal = spec, context, journal
        self._rules, self._scale, self._keeper = spec.compaction.rules, spec.compaction.scale, spec.compaction.keeper
        self._fixed = estimate_text(spec.system) + estimate_tools(spec.tools.specs)
        # What the provider counted of the last request, by which model, and what was estimated of its messages.
        self._counted: tuple[str, int, int] | None = None
        # Of the present request: about how many tokens it has, and how many are estimated of its messages.
        self.tokens = self._sent = 0
        # The tokens of the smallest request that a provider has found too large in this run; 0: none was.
        self._too_large = 0
        # Compactions after a provider found a request too large.
        self._overflows = 0

    def count(self) -> int:
        """Return about how many tokens the next request has."""
        model = self._spec.route.model.name
        scale, tokens = self._scale.by_model.get(model, 1.0), self._context.tokens
        if self._counted is not None and self._counted[0] == model and self._counted[2] <= tokens:
            return self._counted[1] + int(scale * (tokens - self._counted[2]))
        return int(scale * (self._fixed + tokens))

    def answered(self, usage: Usage) -> None:
        """Take what the provider has counted of the request that was assembled last."""
        model = self._spec.route.model.name
        known = self._scale.learn(model, self._fixed + self._sent, usage.input)
        self._counted = (model, usage.input, self._sent) if known else None

    async def assemble(self) -> None:
        """Make the next request fit, before it is sent."""
        self.tokens, limit = self.count(), self._limit(self._spec.route.model)
        if self.tokens > limit:
            await self._make_room(limit)
            self.tokens = self.count()
        self._sent = self._context.tokens

    async def _make_room(self, limit: int) -> None:
        if self._context.prune(self._kept_from()) and self.count() <= limit:
            return
        await self.compact(self._usual_cut(), needed=True)
        if self.count() > limit:
            self._drop(limit)

    async def after_turn(self) -> None:
        """Sum the conversation up at the end of a turn, if the next request would pass the threshold.

        Where that fails, or has little effect, old results are shortened, and it is tried again once the conversation
        has grown.
        """
        due = self._rules.threshold * self._spec.route.model.context_window
        if self.count() > max(due, self._context.no_summary_below):
            await self.compact(self._usual_cut())
            if self.count() > due:
                self._context.prune(self._kept_from())
                self._context.no_summary_below = int(self.count() * _GROWN)

    async def after_overflow(self) -> bool:
        """Make room after a provider found a request too large; False where nothing more can be summed up."""
        self._overflows += 1
        self._too_large = min(self._too_large or self.tokens, self.tokens)
        if self._overflows > len(_TRIES):
            return False
        cut = self._usual_cut(_TRIES[self._overflows - 1])
        return await self.compact(cut, needed=True) is Compacted.DONE

    def shorten(self) -> bool:
        """Shorten all results of tools and drop the older half of the conversation; False where nothing is left to."""
        pruned = self._context.prune(self._context.end + 1)
        dropped = self._context.fit(self._context.tokens // 2)
        self._counted = None
        return pruned or dropped

    async def on_demand(self, focus: str) -> Compacted:
        """Sum up what there is because a person wants it, but the newest turns.

        focus: what is to be kept above all, or empty.
        """
        turns = len({entry.turn_id for entry in self._context.entries})
        wanted = min(self._wanted(), self._context.tokens / 4)
        return await self.compact(self._cut(wanted, min(_LEAST_TURNS, turns - 1), 0.0), focus)

    async def compact(self, cut: int | None, focus: str = "", *, needed: bool = False) -> Compacted:
        """Put a summary in the place of the lines before an index.

        cut: the index; None where there is too little to be summed up. focus: what is to be kept above all, or empty.
        needed: without room nothing can be answered, so where no model sums up, what the service knows has to do.
        """
        if cut is None:
            return Compacted.TOO_LITTLE
        context = self._context
        before, covered = context.summary, context.entries[:cut]
        start, tokens = context.entries[cut].seq, self.count()
        await self._keeper.began(tokens, context.end)
        words = await self._sum_up(cut, focus, notes=not self._too_large)
        if words is None and not needed:
            await self._keeper.ended(None, start, 0)
            return Compacted.FAILED
        most = int(self._spec.route.model.context_window * _QUOTED)
        earlier = before.message if before else None
        text = words if words is not None else summary.shortened(covered, earlier)
        clean, state = self._spec.overflow.clean, await self._keeper.state()
        message = await asyncio.to_thread(summary.compose, clean(text), covered, earlier, clean(state), most)
        entry = await self._keeper.ended(message, start, before.seq if before else 0)
        if entry is None:
            return Compacted.FAILED
        context.begin_at(start, entry)
        self._counted = None
        log.info("a conversation was summed up", by_model=words is not None, tokens_before=tokens, tokens=self.count())
        return Compacted.DONE

    async def _sum_up(self, cut: int, focus: str, *, notes: bool) -> str | None:
        """Return the words of a model about the lines before an index; None if no try had any within the time.

        notes: whether the model may save notes before.
        """
        late = asyncio.ensure_future(self._tell_late())
        try:
            async with asyncio.timeout(self._rules.timeout):
                if notes and self._journal is not None and can_flush(self._spec):
                    await self._save_notes(self._journal)
                if words := await self._by_extension(cut, focus):
                    return words
                route = self._spec.compaction.summing()
                for number in range(self._rules.attempts):
                    share = _TRIES[min(number, len(_TRIES) - 1)]
                    try:
                        answer = await self._ask(route.model, self._request(route, cut, focus, share, first=not number))
                    except ModelError as error:
                        log.warning(
                            "a summary failed", model=route.model.name, kind=error.kind.value, said=error.detail
                        )
                        if error.kind is not ErrorKind.CONTEXT_OVERFLOW:
                            await route.fails(error)
                            _ = route.next_key() or await route.next_model(error)
                        continue
                    await self._keeper.used(route.model.name, answer.usage)
                    if text := answer.message.text.strip():
                        return text
        except BudgetReached as error:
            log.warning("a conversation was not summed up: a budget is reached", said=str(error))
        except TimeoutError:
            log.warning("a summary took too long")
        finally:
            late.cancel()
        return None

    async def _by_extension(self, cut: int, focus: str) -> str:
        """Return the words of an extension about the lines before an index; empty: there is none, or it has failed."""
        if (engine := self._spec.compaction.engine) is None:
            return ""
        try:
            async with asyncio.timeout(self._rules.timeout / 2):  # a model has the rest
                return (await engine(self._before(cut).messages(), focus, _WORDS)).strip()
        except Exception as error:
            log.error("a context engine has failed; a model sums up", said=f"{type(error).__name__}: {error}")
            return ""

    async def save_last_notes(self) -> None:
        """Let the model save notes because the conversation is over, within the time of a summary."""
        if self._journal is not None and can_flush(self._spec):
            try:
                async with asyncio.timeout(self._rules.timeout):
                    await self._save_notes(self._journal, ENDS)
            except (TimeoutError, BudgetReached) as error:
                log.warning("notes of a conversation that is over were not saved", said=str(error) or "too slow")

    async def _save_notes(self, journal: Journal, why: str = SUMMED_UP) -> None:
        """Let the model that answers save notes; what comes after is done even if that fails."""
        model = self._spec.route.model

        async def ask(messages: tuple[Message, ...]) -> Answer:
            answer = await self._ask(model, self._like_the_last(model, messages))
            await self._keeper.used(model.name, answer.usage)
            return answer

        try:
            await flush(self._spec, self._context, journal, ask, why)
        except ModelError as error:
            log.warning("notes were not saved", model=model.name, kind=error.kind, said=error.detail)

    def _like_the_last(self, model: ModelClient, messages: Iterable[Message]) -> ModelRequest:
        """Return a request that begins as the last one did, without images."""
        return ModelRequest(
            system=self._spec.system,
            messages=tuple(replace(one, parts=tuple(without_images(one.parts))) for one in messages),
            tools=self._spec.tools.specs,
            max_output=model.max_output,
            thinking=self._spec.route.thinking,
            for_owners=self._spec.for_owners,
        )

    async def _ask(self, model: ModelClient, request: ModelRequest) -> Answer:
        sent = self._fixed + sum(map(estimate, request.messages))
        await self._keeper.reserve(model.name, Usage(input=sent, output=model.output_limit(request.thinking)))
        async with aclosing(model.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    return part
        raise ModelError(ErrorKind.NETWORK, "the stream ended without an answer")

    def _request(self, route: Route, cut: int, focus: str, share: float, *, first: bool) -> ModelRequest:
        """Return the request for a summary of the lines before an index.

        It begins as the last request did, so that the provider has it in its cache; calls are only forbidden where they
        were made instead. share: how much of the window it may take.
        """
        model, context = route.model, self._before(cut)
        budget = self._room(model, self._limit(model) * share)
        if context.tokens > budget:
            context.prune(context.end + 1)
            context.fit(budget)
        messages = (*context.messages(), summary.request(focus, _WORDS))
        return replace(self._like_the_last(model, messages), thinking=route.thinking, allow_calls=first)

    def _before(self, cut: int) -> Context:
        """Return the part of the conversation before an index."""
        context = Context(self._context.entries[:cut])
        if self._context.summary is not None:
            context.begin_at(self._context.start, self._context.summary)
        return context

    async def _tell_late(self) -> None:
        await self._spec.sleep(TOLD_AFTER)
        await self._keeper.lasts()

    def _limit(self, model: ModelClient) -> int:
        """Return how many tokens a request to a model may have."""
        output = model.output_limit(self._spec.route.thinking)
        reserve = max(min(self._rules.reserve, model.context_window // 2), output)
        limit = max(model.context_window - reserve, model.context_window // 4)
        return min(limit, int(self._too_large * _SMALLER)) if self._too_large else limit

    def _room(self, model: ModelClient, limit: float) -> int:
        """Return how many estimated tokens of messages fit into a limit."""
        return max(int(limit / self._scale.by_model.get(model.name, 1.0)) - self._fixed, 0)

    def _drop(self, limit: int) -> None:
        if self._context.fit(self._room(self._spec.route.model, limit)):
            self._counted = None
            log.warning("the oldest part of a conversation is left out, because it could not be summed up far enough")

    def _kept_from(self) -> int:
        """Return the seq of the first line whose results are not shortened."""
        cut = self._cut(self._wanted(), _LEAST_TURNS, 0.0)
        return self._context.entries[cut].seq if cut is not None else self._context.start

    def _wanted(self) -> float:
        """Return how many of the newest tokens are usually kept word for word, as they are estimated."""
        model = self._spec.route.model
        return min(self._rules.keep, self._limit(model) // 4) / self._scale.by_model.get(model.name, 1.0)

    def _usual_cut(self, keep: float = 1.0) -> int | None:
        """Return the index of the first line that is kept where a summary is due; None if one is not worth while.

        keep: how much of what is usually kept word for word is kept.
        """
        return self._cut(self._wanted() * keep, _LEAST_TURNS, _WORTH, keep / 2)

    def _cut(self, wanted: float, least: int, worth: float, share: float = 0.5) -> int | None:
        """Return the index of the first line that is kept word for word; None if there is too little before it.

        It is the last at which a turn begins that leaves the newest `wanted` tokens and `least` turns. Where that is
        more than a share of a request, it is the last that leaves less, also within a turn. worth: the share of a
        request that the lines before it must have.
        """
        context, model = self._context, self._spec.route.model
        most = self._room(model, self._limit(model)) * share
        kept, turns, at, found = 0, set[str | None](), len(context.entries), None
        for index in reversed(context.cuts()):
            kept += sum(shown_tokens(entry) for entry in context.entries[index:at])
            turns |= {entry.turn_id for entry in context.entries[index:at]}
            at = index
            if found is not None and kept > most:
                break
            found = index
            if kept >= wanted and len(turns) >= least and _is_turn(context, index):
                break
        before = sum(map(shown_tokens, context.entries[:found])) if found else 0
        return found if before > worth * self._limit(model) / self._scale.by_model.get(model.name, 1.0) else None


def _is_turn(context: Context, index: int) -> bool:
    """Whether a turn begins with the line of an index."""
    return context.entries[index].turn_id != context.entries[index - 1].turn_id
