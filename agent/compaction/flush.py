"""The silent step before a summary, or at the end of a conversation, in which the model may write into files what
should outlast the conversation.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from agent.calls.pipeline import Pipeline, Ready
from agent.context import Context
from agent.journal import CallResult, Journal
from agent.message import Message, Text, ToolResult, merged
from agent.models.base import Answer
from agent.spec import RunSpec

# The tools that write files, and those that may be called besides.
_WRITES, _READS = frozenset({"write", "edit", "memory_write"}), frozenset({"read", "grep", "glob"})
# Model calls of one flush.
_STEPS = 3

# Why notes are saved.
SUMMED_UP = "The older part of this conversation is about to be summed up."
ENDS = "The person begins a new conversation, and this one ends here."
_ASK = (
    "[This is not from a person. {} Save now into a file of your notes (memory/ with today's date, added to and never "
    "overwritten) what should be known in later conversations: what people want in general, decisions, and facts that "
    "were hard to find out. Only file tools work here. Nobody sees this: if there is nothing to save, answer with the "
    "word nothing.]"
)
_NOT_NOW = "Not executed: only files can be read and written now."


def can_flush(spec: RunSpec) -> bool:
    """Whether the session has a tool that writes files, and may call it."""
    return any(name in spec.tools.by_name and name not in spec.tools.refused for name in _WRITES)


async def flush(
    spec: RunSpec,
    context: Context,
    journal: Journal,
    ask: Callable[[tuple[Message, ...]], Awaitable[Answer]],
    why: str = SUMMED_UP,
) -> None:
    """Let the model save notes; nothing of it is shown or becomes part of the conversation.

    That the model was asked is persisted before, so that no call is made again after a crash, or where no summary could
    be made. A call that a person would have to allow is not made. ask: makes a model call with these messages. why:
    what is about to happen. Raises what `ask` raises, or what the store raises.
    """
    if not await spec.compaction.keeper.flushes():
        return
    messages = (*context.messages(), Message("user", (Text(_ASK.format(why)),)))
    for _ in range(_STEPS):
        answer = (await ask(messages)).message
        if not answer.tool_calls:
            return
        pipeline, results = Pipeline(spec, context, journal, spec.progress.step), []
        for call in answer.tool_calls:
            found = await pipeline.prepare(call) if call.name in _WRITES | _READS else None
            if isinstance(found, Ready):
                found = await pipeline.execute(found)
            refused = ToolResult(call.call_id, call.name, _NOT_NOW, is_error=True)
            results.append(found.result if isinstance(found, CallResult) else refused)
        read = Message("tool", tuple(results))
        messages = (*messages, answer, read)
        # these lines are no part of the context
        spec = replace(spec, origins=merged((*spec.origins, *read.all_origins)))
