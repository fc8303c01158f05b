"""What stands in a summary beside the model's words: rules of people, identifiers, and no credentials."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.compaction.summary import compose, shortened
from agent.message import Entry, Message, Text, estimate, estimate_text

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
