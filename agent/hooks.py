"""Hooks: what an operator has called at named points of the work, to look, to change, or to forbid.

A point is a frozen type of event. The hooks of a point are called one after the other, those of a higher priority
first, and each gets what the one before it has made of the event. A hook answers nothing, a mapping with the values
that it changes, or `{"block": True, "reason": …}` (`cancel` is the same), which no later hook is asked about. Each has
a time limit. One that fails, is late or answers nonsense is passed over with a line in the log; but what guards then
forbids, because a guard that does not work must not let everything pass.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import structlog

log = structlog.get_logger()

# The seconds that a hook may take unless it says otherwise.
PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """What is about to happen or has happened; each point is a subclass."""

    # The name by which files and the configuration know the point.
    point: ClassVar[str]
    # Whether hooks may forbid it, and whether it is forbidden if a hook fails.
    can_stop: ClassVar[bool] = False
    guards: ClassVar[bool] = False
    # The fields that hooks may change.
    changes: ClassVar[tuple[str, ...]] = ()


E = TypeVar("E", bound=HookEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfCall(HookEvent):
    session_key: str
    turn_id: str
    # Of the transcript, which /new begins anew.
    session_id: str
    call_id: str
    tool_name: str
    tool_input: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeToolCall(_OfCall):
    """The model calls a tool. Policy, validation and people see the arguments that hooks have made of it.

    Asked again for a call that waited for a person or was interrupted by a crash.
    """

    point = "before_tool_call"
    can_stop = guards = True
    changes = ("tool_input",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultPersist(_OfCall):
    """A call that ran has its result, without secrets; the model and the transcript get what hooks make of the text."""

    point = "tool_result_persist"
    changes = ("text",)
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterToolCall(_OfCall):
    """A call has run; the text is as it is persisted."""

    point = "after_tool_call"
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Something that is called at a point."""

    point: str
    # What the log calls it.
    name: str
    call: Callable[[Any], Awaitable[object]]
    # Hooks of a higher one are called first.
    priority: int = 0
    # In seconds.
    timeout: float = PATIENCE
    # Must match the whole name of the tool; None: any event.
    matcher: re.Pattern[str] | None = None

    def wants(self, event: HookEvent) -> bool:
        """Whether it is called for an event."""
        return self.matcher is None or self.matcher.fullmatch(getattr(event, "tool_name", "")) is not None


@dataclass(eq=False)
class Hooks:
    """All hooks of a service."""

    of: Iterable[Hook] = ()
    # The names of the points that have hooks. Where a point has none, nothing else is called on the way of a message.
    points: frozenset[str] = field(init=False)
    _by_point: dict[str, list[Hook]] = field(default_factory=dict, init=False)
    _told: "set[asyncio.Task[Any]]" = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        for hook in sorted(self.of, key=lambda one: -one.priority):
            self._by_point.setdefault(hook.point, []).append(hook)
        self.points = frozenset(self._by_point)

    async def ask(self, event: E) -> tuple[E, str | None]:
        """Call the hooks of a point; return the event as they have changed it, and why it is forbidden or None."""
        for hook in self._by_point.get(event.point, ()):
            if not hook.wants(event):
                continue
            try:
                async with asyncio.timeout(hook.timeout):
                    answer = await hook.call(event)
                event, reason = _taken(event, answer)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                reason = _failed(hook, event, "it was cancelled")
            except TimeoutError:
                reason = _failed(hook, event, f"it took longer than {hook.timeout:g} s")
            except (Exception, SystemExit) as error:  # a hook may not end the service
                reason = _failed(hook, event, f"{type(error).__name__}: {error}")
            if reason is not None:
                log.info("a hook forbids it", point=event.point, hook=hook.name, reason=reason)
                return event, reason
        return event, None

    def tell(self, event: HookEvent) -> None:
        """Call the hooks of a point that may only look, without waiting for them."""
        if event.point in self.points:
            task = asyncio.create_task(self.ask(event), name=f"hook-{event.point}")
            self._told.add(task)
            task.add_done_callback(self._told.discard)

    async def close(self) -> None:
        """Wait for the hooks under way, which have their time limits."""
        await asyncio.gather(*self._told, return_exceptions=True)


# The hooks of who has none.
NO_HOOKS = Hooks()


def _failed(hook: Hook, event: HookEvent, why: str) -> str | None:
    """Log that a hook has failed; return why that forbids the event, or None."""
    log.error("a hook has failed", point=event.point, hook=hook.name, reason=why)
    return f"a hook has failed ({hook.name}: {why})" if event.guards else None


def _taken(event: E, answer: object) -> tuple[E, str | None]:
    """Return what an answer makes of an event, and why it forbids it or None. Raises ValueError for nonsense."""
    if answer is None or answer is False:
        return event, None
    if not isinstance(answer, Mapping):
        raise ValueError(f"it answered {answer!r:.80}, which is neither nothing nor a mapping")
    changed = dict(answer)
    reason = changed.pop("reason", None)
    stops = [changed.pop(word, False) for word in ("block", "cancel")]
    if any(not isinstance(one, bool) for one in stops):
        raise ValueError("`block` and `cancel` are true or false")
    if any(stops):
        if not event.can_stop:
            raise ValueError(f"{event.point} cannot be blocked")
        return event, str(reason or "a hook forbids it")
    for name, value in changed.items():
        if name not in event.changes:
            allowed = ", ".join((*(("block", "reason") if event.can_stop else ()), *event.changes)) or "nothing"
            raise ValueError(f"it answered `{name}`; at {event.point} it may answer {allowed}")
        if not isinstance(value, type(getattr(event, name))):
            raise ValueError(f"`{name}` must be a {type(getattr(event, name)).__name__}")
    return (replace(event, **changed) if changed else event), None
