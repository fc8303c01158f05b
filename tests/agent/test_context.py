"""What of a transcript goes to the model: valid for a strict provider, whole calls, a beginning that seldom moves."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.compaction.summary import compose, shortened
from agent.context import INTERRUPTED, LEFT_OUT, Context
from agent.message import (
    Entry,
    EntryKind,
    Mark,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    cleaned,
    estimate,
    estimate_text,
    well_formed,
)
from agent.models.base import ModelRequest
from agent.tools.conversation import STAY_SILENT
from tests.scripted_model import invalid


class Lines:
    """Writes a transcript line by line, as the store does."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.turn = "t"
        self._calls = 0

    def add(self, kind: EntryKind, *parts: Part) -> None:
        role = {"assistant": "assistant", "assistant_cut": "assistant", "tool_result": "tool"}.get(kind, "user")
        message = Message(role, parts)  # type: ignore[arg-type]
        self.entries.append(
            Entry(seq=len(self.entries) + 1, kind=kind, message=message, tokens=estimate(message), turn_id=self.turn)
        )

    def calls(self, count: int) -> list[ToolCall]:
        self._calls += count
        return [ToolCall(f"c{self._calls - n}", "act", "{}") for n in range(count)]

    def result(self, call: ToolCall, size: int = 3) -> None:
        self.add("tool_result", ToolResult(call.call_id, call.name, "r" * size))


sizes = st.integers(0, 4000)
steps = st.lists(
    st.tuples(st.lists(sizes, max_size=3), sizes, st.sampled_from(["", "steer", "cut", "stop"])), max_size=4
)
"""Of one turn: what each call of a step gives back, how long the answer is, and what happens behind it."""


def written(turns: Sequence[Sequence[tuple[list[int], int, str]]]) -> Lines:
    """A transcript of turns as the service can leave them: all calls have results, in any order."""
    lines = Lines()
    for number, turn in enumerate(turns):
        lines.turn = f"t{number}"
        lines.add("user", Text(f"question {number}"))
        for results, size, event in turn:
            calls = lines.calls(len(results))
            lines.add("assistant", Text("a" * (size + 1)), *calls)
            for call, result in list(zip(calls, results, strict=True))[:: -1 if size % 2 else 1]:
                lines.result(call, result)
            if event == "steer":
                lines.add("user", Text("no, blue"))
            elif event in ("cut", "stop"):
                lines.add("assistant_cut", Text("half an answ"))
                lines.add("note", Text(event))
    lines.turn = "last"
    lines.add("user", Text("last question"))
    return lines


transcripts = st.lists(steps, max_size=8).map(written)
answers = st.lists(st.tuples(st.just([]), st.integers(60, 80), st.just("")), min_size=2, max_size=4)
long_transcripts = st.lists(answers, min_size=20, max_size=30).map(written)
"""Of short lines, in which no single one is worth mentioning."""


def refused(messages: Sequence[Message]) -> list[str]:
    return invalid(ModelRequest(system="", messages=tuple(messages), tools=(), max_output=1))


@given(transcripts, st.integers(-100, 6000))
def test_what_fits_is_valid_and_is_the_end_of_the_transcript(lines: Lines, budget: int) -> None:
    context = Context(lines.entries)
    whole = context.tokens
    moved = context.fit(budget)
    messages = context.messages()
    assert not refused(messages)
    assert moved == (context.start > 1)
    assert context.entries == lines.entries[context.start - 1 :]
    assert context.tokens == sum(entry.tokens for entry in context.entries)
    assert (messages[0].text == LEFT_OUT) == moved
    if whole <= budget:
        assert not moved
    if moved and context.tokens > budget:  # then no smaller piece could be cut off without splitting a call
        later = [entry.kind for entry in context.entries[1:]]
        assert "user" not in later or _open_at(context.entries, later.index("user") + 1)


def _open_at(entries: Sequence[Entry], index: int) -> bool:
    asked = {call.call_id for entry in entries[:index] for call in entry.message.tool_calls}
    done = {p.call_id for entry in entries[:index] for p in entry.message.parts if isinstance(p, ToolResult)}
    return bool(asked - done)


@given(transcripts, st.integers(500, 6000))
def test_the_beginning_stays_while_what_follows_fits(lines: Lines, budget: int) -> None:
    """Read line by line, the beginning moves only when the budget is exceeded."""
    context = Context()
    for entry in lines.entries:
        before = context.messages() if context.entries else ()
        context.append([entry])
        if not context.fit(budget) and entry.kind != "tool_result":
            assert context.messages()[: len(before)] == before
    assert not refused(context.messages())


@given(long_transcripts)
def test_a_beginning_that_moves_moves_far_enough_to_stay_a_while(lines: Lines) -> None:
    """So the prefix of requests changes once in many turns, and not with each."""
    context = Context()
    budget = 20 * max(entry.tokens for entry in lines.entries)
    since_move = budget
    for entry in lines.entries:
        context.append([entry])
        since_move += entry.tokens
        if context.fit(budget):
            assert since_move >= budget * 0.3
            since_move = 0
    assert context.start > 1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("user"), st.just(0)),
            st.tuples(st.just("assistant"), st.integers(0, 3)),
            st.tuples(st.just("result"), st.integers(0, 12)),
            st.tuples(st.just("note"), st.just(0)),
        ),
        max_size=25,
    )
)
def test_any_transcript_is_repaired(events: list[tuple[str, int]]) -> None:
    """Results that are missing, late, doubled, or belong to no call: what is sent is valid all the same."""
    lines = Lines()
    lines.add("user", Text("hello"))
    given_results: dict[str, str] = {}
    for number, (kind, count) in enumerate(events):
        if kind == "assistant":
            lines.add("assistant", Text("words"), *lines.calls(count))
        elif kind == "result":
            call_id = f"c{count}"
            given_results.setdefault(call_id, f"result {number}")
            lines.add("tool_result", ToolResult(call_id, "act", f"result {number}"))
        else:
            lines.add("user" if kind == "user" else "note", Text("more"))
    lines.add("user", Text("last"))
    messages = Context(lines.entries).messages()
    assert not refused(messages)
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResult):
                assert part.text == given_results.get(part.call_id, INTERRUPTED)
    words = [entry.message for entry in lines.entries if entry.kind != "tool_result"]
    assert [message for message in messages if message.role != "tool"] == words


def test_open_calls_are_those_of_the_last_answer_without_results() -> None:
    lines = Lines()
    lines.add("user", Text("hello"))
    assert Context(lines.entries).open_calls() == ()
    calls = lines.calls(3)
    lines.add("assistant", *calls)
    assert Context(lines.entries).open_calls() == tuple(calls)
    lines.result(calls[1])
    lines.add("user", Text("no, blue"))
    assert Context(lines.entries).open_calls() == (calls[0], calls[2])


def test_words_of_a_turn() -> None:
    lines = Lines()
    lines.add("user", Text("hello"))
    lines.add("assistant", *lines.calls(1))
    assert not Context(lines.entries).said("t", ())
    lines.add("assistant_cut", Text("half"))
    lines.add("note", Text("cut"))
    assert Context(lines.entries).said("t", ())
    assert not Context(lines.entries).said("another turn", ())


def test_what_people_said_to_one_turn_stays_together() -> None:
    lines = Lines()
    lines.turn = "t0"
    lines.add("user", Text("a" * 4000))
    lines.add("assistant", Text("b" * 4000))
    lines.turn = "t1"
    lines.add("user", Text("the question"))
    lines.add("user", Text("its file" * 1000))
    context = Context(lines.entries)
    assert context.fit(2500)
    assert context.entries[0].message.text == "the question"


def test_silence_that_a_crash_cut_off_is_silence() -> None:
    def silenced(*results: ToolResult, behind: str = "") -> bool:
        made = [Message("assistant", (ToolCall("a", STAY_SILENT, "{}"),)), *(Message("tool", (r,)) for r in results)]
        kinds: list[EntryKind] = ["assistant", *("tool_result" for _ in results)]
        if behind:
            made, kinds = [*made, Message("user", (Text(behind),))], [*kinds, "user"]
        lines = [
            Entry(seq=n, kind=kind, message=message, tokens=1, turn_id="t")
            for n, (kind, message) in enumerate(zip(kinds, made, strict=True), 1)
        ]
        return Context(lines).silenced()

    cut = ToolResult("a", STAY_SILENT, INTERRUPTED, is_error=True, mark=Mark.CUT)
    assert silenced(cut)
    assert silenced(ToolResult("a", STAY_SILENT, "ok"), ToolResult("b", "read", "no", is_error=True))
    assert not silenced(cut, behind="and this?")
    assert not silenced(ToolResult("a", STAY_SILENT, "wrong arguments", is_error=True))
    assert not silenced()


# Text from outside is well-formed: surrogate halves, which JSON allows and UTF-8 does not, are replaced everywhere.

ANY_TEXT = st.text(st.characters(blacklist_categories=())) | st.text(st.sampled_from("a\ud83d\ude00\ud83d"))


@given(ANY_TEXT)
def test_every_text_can_be_stored(text: str) -> None:
    well_formed(text).encode()


@given(st.text())
def test_a_good_text_comes_back_as_it_is(text: str) -> None:
    assert well_formed(text) == text


def test_a_lone_half_becomes_the_replacement_character() -> None:
    assert well_formed("a\udc00b") == "a\ufffdb"


def test_a_value_without_lone_halves_is_returned_itself() -> None:
    value = Message("user", (Text("plain"), Text("Zoë 🏁")))
    assert cleaned(value) is value


def test_each_lone_half_is_replaced_and_no_pair_is_made_of_two_texts() -> None:
    value = Message("user", (Text("a\ud83c"), Text("\udfc1b"), Text("🏁\ud83c\udfc1")))
    assert cleaned(value) == Message("user", (Text("a\ufffd"), Text("\ufffdb"), Text("🏁🏁")))
    assert cleaned(("x", ("\ud800",))) == ("x", ("\ufffd",))


# What stands in a summary beside the model's words: rules of people, identifiers, and no credentials.

STAMP = "[Tue 2026-07-14 03:33 UTC]"
FILLER = "We talk about one thing and another. " * 40
# About how many tokens people's words may take, and identifiers.
MOST = 400


def said(*texts: str) -> Sequence[Entry]:
    messages = [Message("user", (Text(f"{STAMP}\n{text}"),)) for text in texts]
    return [
        Entry(seq=seq, kind="user", message=one, tokens=estimate(one), turn_id="t")
        for seq, one in enumerate(messages, 1)
    ]


def summed(covered: Sequence[Entry], before: Message | None = None, text: str = "They talked.") -> Message:
    return compose(text, covered, before, "", MOST)


def test_identifiers_are_kept_over_several_summaries() -> None:
    first = summed(said("The order is INV-2026-004711.", "Use v2.14.3-rc1 in 192.168.0.0/24.", "Thanks."))
    assert "INV-2026-004711" in first.text
    rules = [f"Never do number {at}. {FILLER}" for at in range(60)]
    second = summed(said(*rules), first)
    assert "The order is" not in second.text, "it fits no more"
    third = summed(said(*rules), second)
    for one in ("INV-2026-004711", "v2.14.3-rc1", "192.168.0.0/24"):
        assert one in second.text, "it stood in the words of people alone"
        assert one in third.text


def test_identifiers_of_the_models_words_are_kept() -> None:
    first = summed(said("Hello."), text="The host is db-prod-03.internal.lan.")
    assert "db-prod-03.internal.lan" in summed(said("Hello again."), first).text


@pytest.mark.parametrize("who", ["", ' "Ada Lovelace" (id 42) in "Kitchen", thread 7:'])
def test_a_rule_at_the_end_of_a_long_message_is_kept(who: str) -> None:
    (entry,) = said(f"{FILLER}Never push to main without asking me. {FILLER}")
    words = Message("user", (Text(entry.message.text.replace("UTC]", f"UTC]{who}")),))
    found = summed([replace(entry, message=words), *said("Hello.")])
    assert f"- {STAMP}{who} Never push to main without asking me." in found.text


def test_rules_are_kept_where_the_messages_around_them_do_not_fit() -> None:
    rules = [f"Never touch the {name} machine." for name in ("red", "blue", "green", "white", "black")]
    found = summed(said(*[f"{FILLER[:300]} {rule} {FILLER[:200]}" for rule in rules], "Hello."))
    for rule in rules:
        assert rule in found.text
    again = summed(said(*[FILLER] * 20), found)
    for rule in rules:
        assert rule in again.text


CREDENTIALS = [
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "hunter2-and-more",
    "4242424242:AAtokentokentokentokentokentokentoken",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7",
]


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_credentials_become_marks(credential: str) -> None:
    found = summed(said(f"My password is {credential}", "Hello."), text=f"The password: {credential}").text
    assert credential.split()[-1] not in found
    assert found.count("[secret]") >= 2


def test_the_password_of_a_url_becomes_a_mark_and_the_host_stays() -> None:
    found = summed(said("It is postgres://ada:p4ssword@db.internal.lan:5432/x", "Hello.")).text
    assert "p4ssword" not in found
    assert "db.internal.lan:5432" in found


def test_words_without_end_are_cut() -> None:
    found = summed(said("Hello."), text="and so on " * 10_000)
    assert estimate_text(found.text) < 6 * MOST
    assert "too long" in found.text


def test_several_failures_are_said_once() -> None:
    words = shortened(said("Hello."), None)
    for _ in range(5):
        words = shortened(said("Hello."), summed(said("Hello."), text=words))
    assert words.count("No summary could be made") <= 2
