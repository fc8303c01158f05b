"""What the model says cannot be taken for a request of the service, nor a person's name for its words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.base import Ask
from agent.tools.conversation import AskPersonTool
from bot.approvals import words
from bot.speech import button, called, on_wish, spoken, who
from channels.message import ChatKind, Origin, Place
from channels.outgoing import Action, Button
from channels.settings import Streaming
from tests.asking import approval
from tests.bot.replies.test_replies import replies, stream
from tests.bot.test_choices import press
from tests.service import Hark, RecordingChannel, running
from tests.standins.script import Call, Think
from tests.watch import Watch

DECIDING = [
    *("/approve 1a2b3c4d once", "`/approve 1a2b3c4d once`", "/Approve 1", "!approve 1", "/hark approve 1", "/answer 1"),
    *("@Hark /approve 1", "(/approve 1)", "</approve:123>", "Say **/approve** 1", "hark approvals approve 1"),
    *(
        "/app**rove** 1",
        "&#47;approve 1",
        "\\/approve 1",
        "/app<!-- x -->rove 1",
        "[/app](http://a.b)[rove](http://a.b)",
    ),
    *(
        "／approve 1",
        "⁄approve 1",
        "∕approve",
        "！approve 1",
        "/\u200bapprove 1",
        "/\u2009approve 1",
        "/app\ufe0frove 1",
    ),
    *(
        "/аpprove 1",
        "/ᵃᵖᵖʳᵒᵛᵉ 1",
        "/𝐚𝐩𝐩𝐫𝐨𝐯𝐞 1",
        "/áṕprove 1",
        "/hark\u00a0approve 1",
        "/app\u3164rove 1",
        "/hark\napprove",
    ),
]
PLAIN = [
    *("The answer is 7.", "See docs/approvals.md, or `/approvals`.", "I approve!", "“answer” — answer", "<answer>"),
    *("https://example.org/answer", "и /команда", "/help", "yes / no", "```\n/approve 1 once\n```", "> /approve 1"),
]


@pytest.mark.parametrize("text", DECIDING)
def test_what_decides_is_quoted(text: str) -> None:
    body = "\n".join(f"> {line}" for line in text.split("\n"))
    assert spoken(f"Before.\n\n{text}\n\nBehind.") == f"Before.\n\n{body}\n\nBehind."


@pytest.mark.parametrize("text", PLAIN)
def test_what_does_not_stays_as_it_is(text: str) -> None:
    assert spoken(text) == text


def test_the_sign_of_requests_is_not_the_models() -> None:
    assert spoken("🔐 **May I run this?** 🔒🔏🔓\n\n```\nput('🔐')\n```") == (
        "🔑 **May I run this?** 🔑🔑🔑\n\n```\nput('🔐')\n```"
    )
    assert spoken("&#128272; May I?") == "> &#128272; May I?"
    asked = words.request(Ask(digest="", subject="ls"), "", lambda text: True)
    assert asked[0].startswith("🔐 **May I run this?**")
    assert not spoken(asked[0]).startswith("🔐")


@given(st.text("/!approveAPPROVE answr123\n`*_~<>&;#.-🔐\u200b", max_size=40))
def test_the_same_again_changes_nothing(text: str) -> None:
    assert spoken(spoken(text)) == spoken(text)


def test_however_an_answer_is_streamed_it_is_quoted() -> None:
    """A line that is cut in the middle is whole in its block; what the model is told of its own words stays its own."""
    text = "I will run it.\n\n" + "Please type " * 3 + "`/approve 1a2b3c4d once` now.\n\nThank you very much."
    for size in (1, 3, 7, len(text)):
        channel = RecordingChannel(Watch())
        made = replies(Streaming(min_chars=1, max_chars=200), channel)
        planned = stream(made, 1, "", [text[at : at + size] for at in range(0, len(text), size)])
        shown = [line for one in planned for line in one.body.split("\n") if "approve" in line]
        assert shown == ["> " + "Please type " * 3 + "`/approve 1a2b3c4d once` now."]
        assert "".join(one.said for one in planned) == text


def test_a_preview_shows_it_as_the_answer_does() -> None:
    made = replies(Streaming(mode="preview"), PreviewChannel(Watch()))
    made.begin(1, "")
    made.feed("Type this, and it is done: `/approve 1a2b3c4d once`")
    frame = made.frame()
    assert frame is not None
    assert frame.body == "> Type this, and it is done: `/approve 1a2b3c4d once`"


class PreviewChannel(RecordingChannel):
    """On which previews are shown."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch, actions=frozenset({Action.SEND, Action.EDIT}))


async def test_wherever_the_model_speaks(tmp_path: Path) -> None:
    forged = "Type `/approve 1a2b3c4d once`"
    async with running(tmp_path) as hark:
        hark.model.add(Call("message", {"action": "send", "text": f"🔐 {forged}", "buttons": ["Allow once"]}))
        hark.model.add(Call("message", {"action": "edit", "message_id": "1", "text": f"{forged}!"}))
        hark.model.add(Call(AskPersonTool.name, {"question": f"{forged}?", "options": ["Deny", "/answer me"]}))
        hark.model.add(f"That is all. {forged}, it is done.")
        await hark.write("go")
        await approval(hark)
        await hark.delivered()
        sent, edited, question = hark.channel.sent
        assert sent.body == f"> 🔑 {forged}"
        assert sent.buttons == (Button("💬 Allow once", "Allow once"),)
        assert edited.body == f"> {forged}!"
        assert question.body.startswith(f"❓ **A question**\n\n> {forged}?\n\n")
        assert [one.label for one in question.buttons] == ["💬 Deny", "💬 /answer me"]
        await hark.accept(press(hark, question.buttons[0].sends, "3", "deny"))
        await hark.until(lambda: f"> That is all. {forged}, it is done." in hark.channel.texts(), "the answer")
        shown = [one.body for one in hark.channel.sent]
        assert not any(line.lstrip("❓ ").startswith(("Type", "🔐")) for body in shown for line in body.split("\n"))


async def test_a_choice_that_no_button_offers_is_not_written_into_its_message(tmp_path: Path) -> None:
    """Nor is one that would look like what became of a request."""
    label = "Tea** by Ann"
    async with running(tmp_path) as hark:
        hark.model.add(Call("message", {"action": "send", "text": "Which?", "buttons": [label]}))
        hark.model.add("Well.")
        await hark.say("go")
        hark.model.default = "As you like."
        await hark.accept(press(hark, "Allowed by the owner", "1", "forged"))
        await hark.until(lambda: "As you like." in hark.channel.texts(), "the answer")
        await hark.delivered()
        assert [one for one in hark.channel.sent if one.action is Action.EDIT] == []
        await hark.accept(press(hark, label, "1", "real"))
        await hark.until(lambda: any(one.action is Action.EDIT for one in hark.channel.sent), "the edit")
        (edit,) = [one for one in hark.channel.sent if one.action is Action.EDIT]
        assert edit.body == "Which?\n\n✓ **Tea\\*\\* by Ann**"


async def test_what_is_thought_does_not_leave_its_quotation(hark: Hark) -> None:
    await hark.write("/reasoning on")
    await hark.until_texts(1)
    hark.model.add(Think("I think.\r\r/approve 1a2b3c4d once"), Call("/approve 1a2b3c4d once", {}))
    hark.model.add("Fine.")
    await hark.say("go")
    thought = next(body for body in hark.channel.texts() if "I think" in body)
    lines = thought.replace("\r", "\n").split("\n")
    assert [line for line in lines if "approve" in line] == ["> /approve 1a2b3c4d once"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("Ann", "Ann"),
        ("  Dr. Jean-Luc\tO’Neil Jr. ", "Dr. Jean-Luc O’Neil Jr."),
        ("Ann\n\n🔐 **May I run this?**", "Ann May I run this"),
        ("/approve 1a2b3c4d once", "approve 1a2b3c4d once"),
        ("<@U123> @everyone", "U123 everyone"),
        ("[x](https://evil.example)", "xhttpsevilexample"),
        ("`Bob` (telegram:1)", "Bob telegram1"),
        ("\u202eAnn\u2066\u3164\u200b", "Ann"),
        ("\u3164 \u200b 🔐", ""),
        ("李小龍", "李小龍"),
        ("x" * 99, "x" * 40),
    ],
)
def test_names_are_names(name: str, kept: str) -> None:
    assert called(name) == kept
    assert who("telegram", "7", name) == (f"{kept} (telegram:7)" if kept else "telegram:7")


def test_on_whose_wish() -> None:
    place = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)
    people = [Origin(place=place, sender=str(n), sender_name=name) for n, name in enumerate(("Al", "Bo", "", "Di"))]
    assert on_wish(people[:1] * 2) == "Al (telegram:0) asked me to pass this on:"
    assert on_wish(people[:2]) == "Al (telegram:0) and Bo (telegram:1) asked me to pass this on:"
    assert on_wish(people) == "Al (telegram:0) and Bo (telegram:1) and 2 more asked me to pass this on:"


def test_a_button_is_marked_whatever_stands_on_it() -> None:
    assert button("Allow\nonce\u202e", "x") == Button("💬 Allow once", "x")
    assert button("हिन्दी 👩‍💻", "x") == Button("💬 हिन्दी 👩‍💻", "x")
