"""Where text came from, and where a call goes with it: the two halves of the rule that untrusted text never acts.

Each line of a transcript bears the origins of its text, and an answer those of everything that stood in its request, so
the label of a request is found at its end and outlives summaries and turns that are dropped. A call whose effect
leaves the look into the sandbox or the room has a sink. When a request has untrusted text in it, a person is asked
before a call goes to such a sink, whatever else would allow the call.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from textwrap import shorten

from agent.message import Entry, Provenance, ProvenanceKind, merged
from agent.tools.base import Ask, Sink

# What a person is told of each sink that needs a decision.
_SINKS: dict[Sink, str] = {
    "work": "commands that change files here",
    "open": "commands on this machine itself",
    "send": "messages to other conversations",
    "network": "requests into the network",
    "remember": "what is remembered",
    "schedule": "what is scheduled",
    "follow": "more addresses that only such text names, or one that you named again and again",
}
# Quotation marks, and signs that look like them.
_QUOTES = dict.fromkeys(map(ord, '"“”„‟″＂'), "'")
_KINDS: dict[ProvenanceKind, str] = {
    "web": "the page",
    "file": "the file",
    "person": "",
    "command": "the output of",
    "skill": "the skill",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRules:
    """Which text is untrusted."""

    # The kinds of origin that make a person be asked.
    untrusted: Collection[ProvenanceKind]
    # Whether a person's words are no reason to ask in this turn, by channel and id: owners' nowhere, and in the turn of
    # somebody who is none, those of people who may do as much.
    trusts: Callable[[str, str], bool]


def label(entries: Iterable[Entry], prompt: Iterable[Provenance] = ()) -> tuple[Provenance, ...]:
    """Return the origins of a request that ends with these lines, newest first. prompt: those of its system prompt."""
    found = [*prompt]
    for entry in entries:
        found += entry.message.all_origins
        if entry.kind == "assistant":
            break
    return merged(found)


def made_from(entries: Iterable[Entry], prompt: Iterable[Provenance] = ()) -> tuple[Provenance, ...]:
    """Return the origins of the calls of the newest answer: results of calls beside them came after their words.

    entries: newest first. prompt: the origins of the files of the prompt.
    """
    answers = (entry.message.origins for entry in entries if entry.kind == "assistant")
    return merged((*prompt, *next(answers, ())))


def questioned(
    ask: Ask | None, sink: Sink, bears: Collection[Provenance], rules: OriginRules, *, for_owners: bool
) -> tuple[Provenance, ...]:
    """Return the origins because of which a person must be asked about a call; empty: there are none.

    for_owners: whether owners alone wrote what the turn answers. What others have remembered stays in their room.
    """
    if sink not in _SINKS or (ask is not None and ask.question) or (sink == "remember" and not for_owners):
        return ()
    return untrusted(bears, rules)


def untrusted(bears: Iterable[Provenance], rules: OriginRules) -> tuple[Provenance, ...]:
    """Return which of these origins are not trusted."""
    return tuple(
        one
        for one in bears
        if one.kind in rules.untrusted and not (one.kind == "person" and rules.trusts(one.channel, one.sender))
    )


def because(found: Collection[Provenance]) -> str:
    """Return the sentence that says because of what a person is asked."""
    return f"Asked because of: {sources(found)}."


def sources(found: Iterable[Provenance]) -> str:
    """Return origins in words, the names in quotation marks."""
    return ", ".join(f"{_KINDS.get(one.kind, one.kind)} {_quoted(one.what)}".lstrip() for one in found)


def _quoted(name: str) -> str:
    """Return a name that somebody has chosen in quotation marks that it cannot leave."""
    return f"“{shorten(name.translate(_QUOTES), 80)}”"


def for_task(ask: Ask, sink: Sink, found: Collection[Provenance], transcript_id: str) -> Ask:
    """Return the question about a call with untrusted text before it; allowed always, it is allowed for the task.

    Nothing lets it run but a person.
    """
    kinds = sorted({one.kind for one in found})
    return replace(
        ask,
        why=(because(found), *ask.why),
        grants=tuple(map(grants_of(transcript_id, sink), kinds)),
        granted=f"{_SINKS[sink]} beside text of these kinds: {', '.join(kinds)}, until /new in this conversation",
        task=True,
        runs_unanswered=False,
    )


def grants_of(transcript_id: str, sink: Sink) -> Callable[[ProvenanceKind], str]:
    """Return the function that makes the grant for a kind of origin, in one transcript and for one sink."""
    return lambda kind: f"task:{transcript_id}:{sink}:{kind}"
