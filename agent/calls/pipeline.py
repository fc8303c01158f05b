"""What happens to every call, in one order, whatever tool it is of.

repair of name and arguments → loop guard → hooks before → policy and ownership → validation → approval → `running`
stored → run → hooks after → redaction and cap → stored. `agent/calls/batch.py` groups the calls and stores; the steps
before and after a call runs are here. A call that waited for a person, or that a crash found `asked`, begins anew at
the first step. Whatever goes wrong in a step becomes a result that the model can read.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import structlog

from agent.calls.loop_guard import Repeated, repeats
from agent.calls.repair import repaired
from agent.context import Context
from agent.errors import AgentError, ToolError
from agent.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from agent.fences import of_others
from agent.hooks import AfterToolCall, BeforeToolCall, E, ToolResultPersist
from agent.journal import CallResult, CallState, Journal
from agent.message import Mark, Provenance, ToolCall, ToolOutput, ToolResult, merged, well_formed
from agent.origins import for_task, grants_of, label, made_from, questioned, sources, untrusted
from agent.spec import RunSpec
from agent.tools.base import Ask, CallContext, Decision, Parameters, Refused, Sink, Tool
from agent.tools.registry import matches
from agent.tools.schema import parse_arguments

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A call that may run."""

    # Repaired and changed by hooks.
    call: ToolCall
    tool: Tool[Any]
    parameters: Parameters
    context: CallContext
    # See `Tool.follows`.
    follows: str = ""


class Pipeline:
    """Prepares and executes calls of one step that stand side by side; earlier calls have their results."""

    def __init__(self, spec: RunSpec, context: Context, journal: Journal, step: int) -> None:
        self._spec = spec
        self._journal = journal
        self._step = step
        self._lines = context.newest_first
        # The hosts that calls beside each other follow, which are not persisted yet.
        self._follows = Counter[str]()
        self._repeats = repeats(context.of_turn(spec.ref.turn_id), spec.tools.by_name)

    async def prepare(self, call: ToolCall) -> Ready | CallResult | Ask:
        """Check a call: it is ready, or already has its result because it was refused, or a person must decide."""
        ran = repaired(call, self._spec.tools.by_name)
        try:
            return await self._prepare(call, ran)
        except ToolError as error:
            state: CallState = "denied" if isinstance(error, Refused) else "failed"
            mark = Mark.REPEATED if isinstance(error, Repeated) else None
            return await self._result(ran, state, ToolOutput(text=str(error), origins=error.origins), mark)
        except AgentError:
            raise
        except Exception as error:
            log.exception("a call could not be prepared", tool=ran.name)
            return await self._result(ran, "failed", ToolOutput(text=f"{type(error).__name__}: {error}"))

    async def _prepare(self, call: ToolCall, ran: ToolCall) -> Ready | Ask:
        """Do the same. Raises ToolError with what the model is told."""
        decision = self._spec.progress.decisions.get(call.call_id)
        if decision is not None and decision.state == "denied":
            raise _denied(decision)
        self._repeats.check(ran)
        if BeforeToolCall.point in self._spec.rules.hooks.points:
            ran = await self._hooked(ran)
        if reason := self._spec.tools.refused.get(ran.name):
            raise Refused(f"{ran.name} was not executed: {reason}.")
        tool = self._spec.tools.by_name.get(ran.name)
        if tool is None:
            names = ", ".join(sorted(self._spec.tools.by_name)) or "none"
            raise ToolError(f"There is no tool named {call.name!r}. Tools: {names}.")
        parameters = parse_arguments(tool, ran.arguments)
        context = self._context(call, tool.name)
        ask = await self._guarded(await self._ask(tool, parameters, context), tool, parameters, context)
        if ask is not None and decision is not None and decision.allows(ask):
            ask, context = None, replace(context, decision=decision)
        elif ask is not None and decision is not None and (decision.state, decision.digest) == ("expired", ask.digest):
            raise Refused(decision.reason)
        if ask:
            return self._shown(ask)
        if follows := await tool.follows(parameters, context):
            self._follows[follows] += 1
        return Ready(call=ran, tool=tool, parameters=parameters, context=context, follows=follows)

    async def _hooked(self, call: ToolCall) -> ToolCall:
        """Return a call as hooks have changed it. Raises Refused where one forbids it."""
        if (event := self._for_hooks(BeforeToolCall, call)) is None:  # a guard must see what validation might accept
            raise ToolError(f"Wrong arguments for {call.name}; it was not called. They must be one JSON object.")
        event, reason = await self._spec.rules.hooks.ask(event)
        if reason is not None:
            raise Refused(f"Not executed: {reason.rstrip('.')}.")
        return replace(call, arguments=json.dumps(dict(event.tool_input)))  # just what the hooks have seen

    async def _ask(self, tool: Tool[Any], parameters: Parameters, context: CallContext) -> Ask | None:
        """Return what a person must decide, because the tool or the configuration asks; None: nothing."""
        ask = await tool.asks(parameters, context)
        if not matches(tool.name, self._spec.rules.asked_for, tool.group) or (ask is not None and ask.question):
            return ask
        plain = self._plain_ask(tool, parameters, context)
        grant = f"call:{plain.digest}"
        if ask is not None:  # one question for both, and one answer
            return replace(ask, grants=(*ask.grants, grant)) if ask.grants else ask
        if grant in self._spec.rules.grants(context.session_key):
            return None
        return replace(
            plain,
            why=("`tools.require_approval` in the configuration says so.",),
            grants=(grant,),
            granted=f"`{tool.name}` with these arguments, in this conversation",
        )

    def _plain_ask(self, tool: Tool[Any], parameters: Parameters, context: CallContext) -> Ask:
        """Return the question about a call of a tool that does not ask itself."""
        canonical = json.dumps(parameters.model_dump(mode="json"), sort_keys=True)
        bound = json.dumps([tool.name, canonical, context.session_key]).encode()
        arguments = parameters.model_dump_json(exclude_unset=True)
        return Ask(digest=hashlib.sha256(bound).hexdigest(), subject=f"{tool.name} {arguments}")

    async def _guarded(
        self, ask: Ask | None, tool: Tool[Any], parameters: Parameters, context: CallContext
    ) -> Ask | None:
        """Return what a person must decide if untrusted text stands in the request, else the Ask as it is."""
        rules, task = self._spec.rules, self._spec.transcript_id
        if not (bears := made_from(self._lines(), self._spec.origins)):
            return ask
        sink = await tool.sink(parameters, context)
        sink = sink if sink in get_args(Sink) else "open"  # a tool of an extension says anything
        found = questioned(ask, sink, bears, rules.origins, for_owners=self._spec.for_owners)
        found = tuple([one for one in found if not await tool.covers(parameters, context, one)])
        if not found:
            return ask
        if sink == "follow" and context.background:
            raise Refused(
                "Not followed: only text from outside names that address, and nobody is here to be asked. The operator "
                "says how many such addresses are followed with `web.fetch.follow`."
            )
        if sink == "remember" and context.background:
            raise Refused(
                "Not written: nobody is here to look at it, and other people's text stands before it. "
                "Give it to `memory_write`, or write it into a file in `pending/`, which no prompt reads "
                "until an owner has looked."
            )
        if context.as_guest:  # no words of theirs reach an owner as a request
            raise Refused(f"Not executed: it was written beside {sources(found)}, and whoever asks may not do that.")
        granted, wider = rules.grants(context.session_key), ("network",) if sink == "follow" else ()
        grants = [grants_of(task, one) for one in (sink, *wider)]
        if all(any(grant(one.kind) in granted for grant in grants) for one in found):
            return ask
        return for_task(ask or self._plain_ask(tool, parameters, context), sink, found, task)

    def _shown(self, ask: Ask) -> Ask:
        """Return the Ask as it is persisted and shown, without secrets. Digest and grants keep what they stand for."""
        clean = self._spec.overflow.clean
        why, risks, options = (tuple(map(clean, texts)) for texts in (ask.why, ask.risks, ask.options))
        subject, granted = clean(ask.subject), clean(ask.granted)
        return replace(ask, subject=subject, granted=granted, why=why, risks=risks, options=options)

    def _context(self, call: ToolCall, tool: str) -> CallContext:
        spec, mask = self._spec, self._spec.overflow.mask()

        def update(text: str) -> None:
            if shown := mask.feed(text.encode(errors="replace")).decode(errors="replace"):
                self._journal.tell(
                    ToolExecutionUpdate(run=spec.ref, at=spec.now(), step=self._step, call_id=call.call_id, text=shown)
                )

        return CallContext(
            turn_id=spec.ref.turn_id,
            session_key=spec.ref.session_key,
            call_id=call.call_id,
            update=update,
            started=partial(self._journal.process_started, call.call_id),
            background=spec.background,
            as_guest=tool in spec.tools.as_guest,
            texts=self._texts,
            trusted_texts=self._trusted_texts,
            followed=self._followed,
            bears=self._bears,
            stands=self._stands,
            doubts=lambda: untrusted(made_from(self._lines(), spec.origins), spec.rules.origins),
        )

    def _bears(self) -> tuple[Provenance, ...]:
        """Return the label of the request; what others than owners let the model write is theirs, too."""
        found = self._stands()
        return found if self._spec.for_owners else merged((*found, Provenance("person", "others who wrote here")))

    def _stands(self) -> tuple[Provenance, ...]:
        """Return the label of the request."""
        return label(self._lines(), self._spec.origins)

    async def _followed(self) -> Mapping[str, int]:
        return Counter(await self._journal.followed()) + self._follows

    def _trusted_texts(self) -> Iterator[str]:
        for entry in self._lines():
            if entry.kind == "user" and not untrusted(entry.message.origins, self._spec.rules.origins):
                yield of_others(entry.message.text, labelled=bool(entry.message.origins))

    def _texts(self) -> Iterator[str]:
        read = {tool.name for tool in self._spec.tools.by_name.values() if tool.reads_web}
        for entry in self._lines():
            if entry.kind == "user":
                yield of_others(entry.message.text, labelled=bool(entry.message.origins))
            # what has no origin is an error in Hark's words, which may repeat the model's
            yield from (one.text for one in entry.message.tool_results if one.name in read and one.origins)

    def start(self, ready: Ready) -> ToolExecutionStart:
        """Return the event of a call that is about to run."""
        spec, call = self._spec, ready.call
        return ToolExecutionStart(
            run=spec.ref,
            at=spec.now(),
            step=self._step,
            call_id=call.call_id,
            name=call.name,
            arguments=spec.overflow.clean(call.arguments),
        )

    async def execute(self, ready: Ready) -> CallResult:
        """Run a call and the hooks after it. Only AgentError, and cancellation from outside, are raised."""
        call = ready.call
        try:
            output: ToolOutput = await ready.tool.run(ready.parameters, ready.context)
            if not isinstance(output, ToolOutput):
                raise TypeError(f"the tool returned a {type(output).__name__} and no ToolOutput")
        except AgentError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            output = ToolOutput(text="The tool was cancelled by itself; its outcome is unknown.", is_error=True)
        except ToolError as error:
            output = ToolOutput(text=str(error), is_error=True, origins=error.origins)
        except (Exception, SystemExit) as error:  # a tool may not end the service
            output = ToolOutput(text=f"{type(error).__name__}: {error}", is_error=True)
        if ToolResultPersist.point in (hooks := self._spec.rules.hooks).points:
            text = self._spec.overflow.clean(well_formed(output.text))
            if (event := self._for_hooks(ToolResultPersist, call, text=text, is_error=output.is_error)) is not None:
                output = replace(output, text=(await hooks.ask(event))[0].text)
        result = await self._result(call, "failed" if output.is_error else "done", output)
        if AfterToolCall.point in hooks.points:
            text = result.result.text
            if (told := self._for_hooks(AfterToolCall, call, text=text, is_error=output.is_error)) is not None:
                hooks.tell(told)
        return result

    def _for_hooks(self, point: Callable[..., E], call: ToolCall, **more: object) -> E | None:
        """Return a call as hooks see it; None: the arguments are no object, which validation reports."""
        try:
            arguments = json.loads(call.arguments.strip() or "{}")
        except (ValueError, RecursionError):
            return None
        if not isinstance(arguments, dict):
            return None
        ref, of = self._spec.ref, {"call_id": call.call_id, "tool_name": call.name, "tool_input": arguments}
        where = {"session_key": ref.session_key, "turn_id": ref.turn_id, "session_id": self._spec.transcript_id}
        return point(**where, **of, **more)

    async def _result(
        self, call: ToolCall, state: CallState, output: ToolOutput, mark: Mark | None = None
    ) -> CallResult:
        """Return the result as it is persisted, published and sent to the model.

        Secrets are removed before the text is shortened, because shortening could cut one in two.
        """
        text = self._spec.overflow.clean(well_formed(output.text))
        text = await self._spec.overflow.keep(f"{self._spec.ref.turn_id}-{call.call_id}", text)
        if mark is None:
            text = self._repeats.noted(call, text)
        result = ToolResult(call.call_id, call.name, text, state != "done", output.images, mark, output.origins)
        return CallResult(result, state, output.goes_on)

    def end(self, result: CallResult) -> ToolExecutionEnd:
        """Return the event of a call that has its result."""
        return ToolExecutionEnd(
            run=self._spec.ref,
            at=self._spec.now(),
            step=self._step,
            call_id=result.result.call_id,
            name=result.result.name,
            state=result.state,
            text=result.result.text,
        )


def _denied(decision: Decision) -> Refused:
    said = f" They said: {decision.reason}" if decision.reason else ""
    return Refused(f"A person denied this call; it was not executed.{said}")
