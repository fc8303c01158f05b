"""Runs claimed turns: collects what a run needs, lets the agent work, and makes sure that no turn is left open.

`Contexts` has the context of the transcript, `Presentation` how answers are shown, and `bot/runs/specs` all else that a
run needs.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from agent.context import Context
from agent.errors import HALTED, RunLost
from agent.events import AgentEnd, MessageEnd, MessageUpdate, Outcome
from agent.journal import Step
from agent.message import Message, Text, Usage
from agent.runner import Runner
from bot.clock import Clock
from bot.config.background import Heartbeat
from bot.hooks.points import MessageReceived, MessageSending
from bot.people.accounts import Accounts
from bot.persistence.errors import StaleRun, StoreUnavailable
from bot.persistence.freezes import Frozen
from bot.persistence.turns import BY_THEMSELVES, Serves, Turn, TurnKind
from bot.replies.beat_words import BeatWords
from bot.replies.cutting import Replies
from bot.replies.reactions import Reaction, acknowledge
from bot.replies.showing import Typing
from bot.runs import freeze_words
from bot.runs.answer_files import AnswerFiles
from bot.runs.hooking import TurnHooks
from bot.runs.journal import RunDependencies, RunJournal
from bot.runs.media import Media
from bot.runs.specs import Specs
from bot.store.store import Store
from bot.store.writer import once_available
from channels.settings import AccountSection, Acknowledgement, ReplyTo, Streaming
from channels.sources import frozen

# Seconds between tries while the store cannot write.
PAUSE = 1.0
# The most estimated tokens of all cached contexts, about 2 MB of text.
MAX_TOKENS = 500_000
# Milliseconds for which an alert of a beat is not repeated.
_DAY = 24 * 3_600_000
# What answers a turn in place of a model.
_HOOK = "hook"
# How answers to programs are cut: in one piece, returned when it is whole.
_WHOLE = Streaming.model_validate({"min_chars": 60_000, "max_chars": 100_000, "break": "message_end"})


@dataclass(eq=False, slots=True, kw_only=True)
class Presentation:
    """Decides how the words of a run are shown, by the configuration of the account on which its turn answers."""

    accounts: Accounts
    heartbeat: Heartbeat
    store: Store
    clock: Clock

    def shown(self, turn: Turn) -> tuple[Streaming, ReplyTo, Acknowledgement | None]:
        """Return how the answers of a turn are cut, which of their messages are shown as replies, and how it reacts."""
        account = self.accounts.like(turn.place)
        if account is None:
            return _WHOLE, "off", None
        section, cutting = account.section, account.section.cutting()
        ack = section.ack if isinstance(section, AccountSection) and section.ack.states else None
        if turn.kind is TurnKind.BEAT:
            cutting = cutting.model_copy(update={"mode": "off"})
        return cutting, section.replying(), None if turn.kind in (*BY_THEMSELVES, TurnKind.CHILD) else ack

    def beat_words(self, turn: Turn) -> BeatWords | None:
        """Return what judges the words of a beat; None for other turns."""
        if turn.kind is not TurnKind.BEAT:
            return None
        account = self.accounts.like(turn.place)
        shows = self.heartbeat.shown_by(account.section if account else None)
        return BeatWords(
            self.heartbeat.ack_max_chars,
            shows,
            lambda: self.store.schedules.last_alert(turn.turn_id, turn.conv_id, self.clock.now() - _DAY),
        )


class Contexts:
    """A cache of contexts by transcript, so that a turn appends to one instead of reading its history again.

    A context that a run has taken is not in the cache. The store decides: a cached context is used only if its last
    line directly precedes the first new one.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: OrderedDict[str, Context] = OrderedDict()
        self._tokens = 0
        # Transcripts whose next context is not kept, see `forget`.
        self._forgotten: set[str] = set()

    async def take(self, turn: Turn) -> Context:
        """Return the context of a claimed turn, with the new lines of the turn."""
        context = self._cached.pop(turn.transcript_id, None)
        if context is not None:
            self._tokens -= context.tokens
            if turn.entries and turn.entries[0].seq == context.end + 1:
                context.append(turn.entries)
                return context
        return Context(await self._store.reads.context(turn.transcript_id))

    def give_back(self, transcript_id: str, context: Context) -> None:
        """Cache a context for the next turn of its transcript; above MAX_TOKENS the least recently used are dropped."""
        if transcript_id in self._forgotten:
            self._forgotten.discard(transcript_id)
            return
        self._cached[transcript_id] = context
        self._tokens += context.tokens
        while self._tokens > MAX_TOKENS and self._cached:
            _, old = self._cached.popitem(last=False)
            self._tokens -= old.tokens

    def forget(self, transcript_id: str) -> None:
        """Do not keep a context of a transcript, which begins elsewhere or has other lines in the store meanwhile."""
        self._forgotten.add(transcript_id)
        if (cached := self._cached.pop(transcript_id, None)) is not None:
            self._tokens -= cached.tokens
            self._forgotten.discard(transcript_id)


log = structlog.get_logger()


class TurnRunner:
    """Makes and executes the run of a claimed turn."""

    def __init__(
        self,
        dependencies: RunDependencies,
        specs: Specs,
        presentation: Presentation,
        media: Media,
        recall: Callable[[Turn, Context], Awaitable[None]],
    ) -> None:
        """recall: puts what is remembered about the message of a turn beside it, before the first model call."""
        self._dependencies = dependencies
        self._store = dependencies.store
        self._clock = dependencies.clock
        self._specs = specs
        self._presentation = presentation
        self._media = media
        self._recall = recall
        self.contexts = Contexts(self._store)
        self._points = dependencies.hooks.points
        self._hooks = TurnHooks(dependencies.hooks, self._store)

    async def claim(
        self, session_key: str, *, background: bool, until: int, serves: Serves | None = None
    ) -> Turn | None:
        """Claim a session's next turn, see `Claims.claim`; None: there is none, or a freeze holds it, which people are
        told. Raises StoreUnavailable, or OtherPeople."""
        worker, newest = self._dependencies.worker, None
        if MessageReceived.point in self._points and not background:
            newest = await self._hooks.newest(session_key)
        try:
            return await self._store.turns.claim(
                session_key,
                worker,
                self._specs.answered_by,
                background=background,
                until=until,
                newest=newest,
                serves=serves,
            )
        except Frozen as held:
            for conv_id, place in held.untold:
                source, text = frozen(held.freeze.since, conv_id), freeze_words.told(held.freeze.what)
                await self._dependencies.outbox.tell(place, source, text)
            return None

    def journal(self, turn: Turn) -> RunJournal:
        """Make the journal of a turn that is about to run."""
        outbox = self._dependencies.outbox
        serving = outbox.serving(turn.place)
        rendering = serving or outbox.channel(turn.place.channel)
        cutting, replying, ack = self._presentation.shown(turn)
        if MessageSending.point in self._points and cutting.mode == "preview":  # of which hooks would see the end alone
            cutting = cutting.model_copy(update={"mode": "block"})
        beat = self._presentation.beat_words(turn)
        speaks = turn.settings.voice == "on" and turn.kind not in BY_THEMSELVES
        speech = outbox.speech if speaks else None
        files = AnswerFiles(self._dependencies.rooms, turn.session_key, serving, speech)
        code = files.of_code if beat is None else None
        replies = Replies(turn, rendering, cutting, replying, self._clock.nonce, code)
        seen = acknowledge(turn.messages[-1], ack) if ack else ()
        typing = Typing(
            None if turn.kind in BY_THEMSELVES or turn.settings.child else serving,
            turn.place,
            lambda error: log.info("typing failed", reason=str(error)),
            Reaction(serving, turn.place, seen[0], ack, self._clock.sleep) if serving and seen and ack else None,
        )
        return RunJournal(self._dependencies, turn, replies, files, typing, beat)

    async def run(self, journal: RunJournal) -> bool:
        """Run a turn to its end, or give it back to the queue when it is cancelled or the store cannot write.

        Returns whether something of it may be left to run (itself, or steering texts that nobody read).
        """
        turn = journal.turn
        try:
            return await self._execute(journal)
        except (RunLost, StaleRun):
            log.info("run ended by a stop or a freeze", turn=turn.turn_id)
            self._hooks.ended(turn, Outcome.ABORTED)
            if turn.kind in BY_THEMSELVES:  # it may have given way, with a call of which there is no result
                await self.give_back(turn)
        except asyncio.CancelledError:
            await self.give_back(turn)
            raise
        except StoreUnavailable:
            await self._wait_for_store(turn)
        finally:
            journal.stop_showing()
            if journal.limited:
                journal.settle()
        return True

    async def give_back(self, turn: Turn, until: int | None = None) -> None:
        """Put a cancelled turn back into the queue, unless a stop has ended it.

        until: when the run ceased to work, in milliseconds since the epoch; None: now.
        """
        with contextlib.suppress(StoreUnavailable):  # then the next start puts it back
            await asyncio.shield(self._release(turn, until))

    async def put_back(self, turn: Turn, until: int | None = None) -> None:
        """Put a turn back as `give_back` does, but try until the store can write, because the service goes on."""
        try:
            await once_available(lambda: self._release(turn, until), lambda _: self._clock.sleep(PAUSE))
        except asyncio.CancelledError:
            await self.give_back(turn, until)
            raise

    async def _execute(self, journal: RunJournal) -> bool:
        turn = journal.turn
        try:
            context = await self.contexts.take(turn)
            journal.resume(context)
            if any(one.state == "always" for one in turn.decisions.values()):
                await self._dependencies.requests.grants.load()  # the decision may not have been loaded yet
            async with self._specs.of(turn, journal.send, journal.typing.state) as spec:
                runner = Runner(spec, context, journal)
                with journal.typing:
                    if (files := await self._media.of(turn, context, journal.say)) is not None:
                        context.append([await journal.note(files, "user")])
                    await self._recall(turn, context)
                    end = await self._instead(journal, context) if self._points else None
                    end = end or await runner.run()
                if end.outcome in (Outcome.COMPLETED, Outcome.LIMIT) and turn.kind not in BY_THEMSELVES:
                    await self._compact(turn, runner)
        except (RunLost, StaleRun, StoreUnavailable):
            raise
        except Exception:
            log.exception("run failed", turn=turn.turn_id)
            await journal.fail(Outcome.FAILED, "internal", "an error inside the service; the log has it")
            self._hooks.ended(turn, Outcome.FAILED)
            return True
        if turn.kind not in BY_THEMSELVES:  # lines of other turns may be hidden later
            self.contexts.give_back(turn.transcript_id, context)
        if self._points:
            self._hooks.ended(turn, end.outcome, end, context)
        log.info(
            "turn",
            turn=turn.turn_id,
            session=turn.session_key,
            outcome=end.outcome.value,
            seconds=round(end.duration, 3),
            tokens_in=end.usage.input,
            tokens_out=end.usage.output,
        )
        return end.outcome is not Outcome.COMPLETED

    async def _instead(self, journal: RunJournal, context: Context) -> AgentEnd | None:
        """Answer a turn with the words of a hook; None where no hook answers it, or somebody wrote meanwhile."""
        turn = journal.turn
        text = await self._hooks.reply(turn)
        if text is None:
            return None
        run, now, step = turn.run, self._clock.now(), turn.step + 1
        journal.begin(step, "")
        if text:
            await journal.update(MessageUpdate(run=run, at=now, step=step, part="text", delta=text))
        said = Message("assistant", (Text(text),) if text else (), model=_HOOK)
        ended = MessageEnd(
            run=run, at=now, step=step, text=text, calls=(), stop_reason="end", usage=Usage(), model=_HOOK
        )
        kept = await journal.step(
            Step(
                message=said,
                ended=ended,
                usage=turn.usage,
                context_start=context.start,
                pruned_below=context.pruned_below,
                outcome=Outcome.COMPLETED,
            )
        )
        context.append(kept.entries)
        if kept.halted:
            raise RunLost(HALTED)
        return kept.end

    async def _compact(self, turn: Turn, runner: Runner) -> None:
        """Sum the conversation up after a turn where that is due; the turn has ended, whatever becomes of this."""
        try:
            await runner.engine.after_turn()
        except StoreUnavailable:
            log.warning("a conversation was not summed up: the store cannot write", session=turn.session_key)
        except Exception:
            log.exception("a conversation was not summed up", session=turn.session_key)

    async def _wait_for_store(self, turn: Turn) -> None:
        """Put a turn whose run the store could not write back into the queue, as soon as the store can write."""
        log.error("the store cannot write; the run waits", turn=turn.turn_id)
        since = self._clock.now()
        try:
            await self._clock.sleep(PAUSE)
        except asyncio.CancelledError:
            await self.give_back(turn, since)
            raise
        await self.put_back(turn, since)

    async def _release(self, turn: Turn, until: int | None = None) -> None:
        """Put a turn back into the queue. until: as for `give_back`."""
        await self._store.turns.release(turn.run, until)
