"""The command /context, which shows what takes how much of the model's context window in a conversation.

It shows the last request of the present transcript. Where none has been sent since the start of the service, it shows
what the next one would have. No model is needed for either.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from agent.context import Context
from agent.images import Images
from agent.models.base import ModelRequest
from agent.models.fleet import Fleet
from agent.models.protocol import images_of
from agent.models.refusals import applied
from agent.prompt.build import Prompt
from agent.prompt.requests import Part, PartKind, Sent
from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.persistence.turns import TurnKind
from bot.runs import refusal_words
from bot.runs.specs import Specs
from bot.runs.tools_command import turn_of, unsent
from bot.store.store import Store

# Cells of the bar, which stands for the whole context window.
WIDTH = 30
# What the bar is made of, in its order: a sign, a name, and the kinds of parts.
_GROUPS = (
    ("▒", "Instructions", (PartKind.SECTION,)),
    ("▓", "Files", (PartKind.FILE,)),
    ("░", "Tools", (PartKind.TOOL,)),
    ("█", "Messages", (PartKind.MESSAGE,)),
)
_FREE = "·"


def build(specs: Specs, store: Store, stamp: Callable[[int], str]) -> Command:
    """Make the command. specs: decides what runs are made of. stamp: writes a moment (milliseconds) for people."""

    async def show(call: Call, _: Arguments) -> Effect:
        transcript_id, prompt = await store.reads.prompt(call.session_key) or ("", None)
        last = specs.requests.last(transcript_id)
        sent = last or await _next(specs, store, call, transcript_id, prompt)
        images = specs.rooms.inside(call.session_key).images
        return Say("\n".join((told(sent, stamp), *await _left_out(sent, specs.fleet, images, call.by_owner))))

    return Command(name="context", help="What takes how much of what I can keep in mind.", run=show, guests="direct")


async def _next(specs: Specs, store: Store, call: Call, transcript_id: str, prompt: Prompt | None) -> Sent:
    """Return the request that a message would cause if it were no command, with no words of its own.

    transcript_id: of the session, or empty. prompt: of that transcript, None before its first turn.
    """
    turn, inside = turn_of(call), specs.rooms.inside(call.session_key)
    async with AsyncExitStack() as made:
        offer, _ = await specs.toolbox.open(turn, inside, made, unsent)
    prompt = prompt or await specs.prompts.made(turn, inside, offer.specs)
    context = Context(await store.reads.context(transcript_id))
    settings = await store.settings.of(call.session_key)
    model = specs.fleet.clients(specs.answering(TurnKind.REPLY, settings, (call.message,)).model)[0]
    request = ModelRequest(
        system=prompt.text, messages=context.messages(), tools=offer.specs, max_output=model.max_output
    )
    return Sent(request=request, prompt=prompt, model=model.name, window=model.context_window)


async def _left_out(sent: Sent, fleet: Fleet, images: Images, for_owner: bool) -> Sequence[str]:
    """Return lines about what of a request the model does not get, because it takes no more or has refused it.

    for_owner: whether the provider's words are shown.
    """
    client, known = fleet.clients(sent.model)[0], fleet.refused_by(sent.model).parts
    shown = replace(sent.request, messages=await images.loaded(sent.request.messages, client.takes))
    beyond = len(images_of(sent.request.messages)) - len(images_of(shown.messages))
    many = f"{beyond} picture{'s' if beyond > 1 else ''}"
    lines = (
        [f"- {many}: this model takes no more, or none of {'their' if beyond > 1 else 'its'} size"] if beyond else []
    )
    tools = shown.tools[client.takes.tools or len(shown.tools) :]
    lines += [f"- the tools {', '.join(tool.name for tool in tools)}: this model takes no more"] if tools else []
    found = await asyncio.to_thread(applied, shown, known)
    for reason in dict.fromkeys(known[part] for part in found):
        parts = [part for part in found if known[part] == reason]
        why = reason if for_owner else "this model refused it"
        lines += [
            f"- {what}: {why}" for what in (*refusal_words.parts_left_out(parts), *refusal_words.parts_simpler(parts))
        ]
    return ["", f"**Left out** for `{sent.model}`:", *lines] if lines else []


def told(sent: Sent, stamp: Callable[[int], str]) -> str:
    """Return what people are told about a request: its size, a bar, and each part but the messages by its name."""
    parts = sent.parts
    counted = sent.usage.input if sent.usage else 0
    tokens = counted or sum(part.tokens for part in parts)
    when = f"last request, [{stamp(sent.at)}]" if sent.at is not None else "next request"
    by = "counted by the provider" if counted else "estimated"
    lines = [
        f"**Context** of the {when}, {sent.model}: {_share(tokens, sent.window)} of {sent.window:,}, {by}.",
        f"`{bar(parts, sent.window)}`",
    ]
    for sign, name, kinds in _GROUPS:
        lines += _group(f"{sign} {name}", [part for part in parts if part.kind in kinds], sent.window)
    lines += "", f"{_FREE} Free: {_share(max(sent.window - tokens, 0), sent.window)}"
    return "\n".join((*lines, "", "Sizes of single parts are estimates."))


def bar(parts: tuple[Part, ...], window: int) -> str:
    """Return a bar of WIDTH cells for the window, in which everything that takes any of it has at least one cell."""
    drawn = ""
    for sign, _, kinds in _GROUPS:
        tokens = sum(part.tokens for part in parts if part.kind in kinds)
        drawn += sign * (max(1, round(tokens * WIDTH / window)) if tokens else 0)
    return drawn[:WIDTH].ljust(WIDTH, _FREE)


def _group(title: str, parts: list[Part], window: int) -> Iterator[str]:
    count = f" ({len(parts)})" if len(parts) > 1 else ""
    yield ""
    yield f"{title}{count}: {_share(sum(part.tokens for part in parts), window)}"
    for part in sorted(parts, key=lambda one: -one.tokens):
        if part.kind is not PartKind.MESSAGE:
            yield f"- {part.name}: {part.characters:,} characters, {_share(part.tokens, window)}"


def _share(tokens: int, window: int) -> str:
    return f"{tokens:,} tokens ({tokens / window:.1%})"
