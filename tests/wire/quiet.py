"""Answers with signs of silence: what people see of each in a beat, and of the same words in an ordinary reply."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tests.standins.script import Call, Continuer, Reply, Say, Stop, Think, Written
from tests.wire.corpus import LOOK, SECRET, bits, tool

MOST = 300
OK = "HEARTBEAT_OK"
GAVE_NOTHING = "The model gave no usable answer. Please try again."


@dataclass(frozen=True, slots=True)
class Quiet:
    """beat: the messages of it that stand in the chat at the end; reply: those of an ordinary one, the same without.

    files: what is attached, in either.
    """

    name: str
    steps: Sequence[Written | Reply]
    beat: Sequence[str] = ()
    reply: Sequence[str] | None = None
    files: Sequence[str] = ()


def alarm(name: str, length: int = 60) -> str:
    """A sentence of that many characters which no other name has words in common with."""
    letters, words = "", []
    while len(letters) < length * 2:
        digest = hashlib.sha256(f"{name} {len(letters)}".encode()).digest()
        letters += "".join("bdfgklmnprstvwxz"[byte >> 4] + "aeiou"[byte % 5] for byte in digest)
    at = 0
    while at < length:
        words.append(letters[at : at + 7])
        at += 8
    text = " ".join(words)[: length - 1].rstrip()
    return (text + "u" * (length - 1 - len(text)) + ".").capitalize()


def _bare() -> list[Quiet]:
    """Nothing but the token, however it is dressed."""
    forms = {
        "plain": OK,
        "small": "heartbeat_ok",
        "mixed": "Heartbeat_OK",
        "blank": f"\n\n \t{OK} \r\n\n",
        "bold": f"**{OK}**",
        "underscores": f"__{OK}__",
        "italic": f"_{OK}_",
        "both": f"***{OK}***",
        "struck": f"~~{OK}~~",
        "code": f"`{OK}`",
        "bold-code": f"**`{OK}`**",
        "fence": f"```\n{OK}\n```",
        "fence-text": f"```text\n{OK}\n```",
        "escaped": r"HEARTBEAT\_OK",
        "heading": f"## {OK}",
        "quote": f"> {OK}",
        "item": f"- {OK}",
        "star": f"* {OK}",
        "html": f"<b>{OK}</b>",
        "paragraph": f"<p><strong>{OK}</strong></p>",
        "attributes": f'<div class="x">{OK}</div>\n',
        "break": f"{OK}<br/>",
        "nbsp": f"&nbsp;{OK}&nbsp;",
        "nbsp-character": f"\u00a0{OK}\u00a0",
        "dot": f"{OK}.",
        "marks": f"{OK}!!!",
        "dots": f"{OK}…",
        "tick": f"{OK} ✅",
        "bold-dot": f"**{OK}**.",
        "dot-bold": f"**{OK}.**",
        "round": f"({OK})",
        "square": f"[{OK}]",
        "quoted": f'"{OK}"',
        "typographic": f"“{OK}”",
        "twice": f"{OK}\n\n{OK}",
        "with-no-reply": f"NO_REPLY\n{OK}",
        "no-reply": "NO_REPLY",
        "no-reply-small": " No_Reply\n",
        "no-reply-bold": "**NO_REPLY**",
        "no-reply-dot": "NO_REPLY.",
        "json": '{"action": "NO_REPLY"}',
        "json-fence": '```json\n{"action": "NO_REPLY"}\n```',
        "json-ok": f'{{"action": "{OK}"}}',
        "reply-tag": f"[[reply_to_current]] {OK}",
        "final": f"<final>{OK}</final>",
        "thought": f"<think>{SECRET}</think>{OK}",
        "thought-behind": f"{OK}<think>{SECRET}</think>",
    }
    return [Quiet(f"bare-{name}", [bits(text)]) for name, text in forms.items()]


def _short(tag: str) -> list[Quiet]:
    """At an edge, with few words beside it: quiet in a beat, and the words alone in a reply."""
    forms = {
        "start": f"{OK} {{}}",
        "end": f"{{}} {OK}",
        "line": f"{OK}\n\n{{}}",
        "end-line": f"{{}}\n\n{OK}",
        "end-dot": f"{{}}\n\n{OK}.",
        "end-marks": f"{{}} {OK}!!",
        "both": f"{OK}\n{{}}\n{OK}",
        "bold": f"**{OK}**\n\n{{}}",
        "end-bold": f"{{}}\n\n**{OK}**",
        "html": f"<b>{OK}</b> {{}}",
        "end-html": f"{{}}<br><i>{OK}</i>",
        "nbsp": f"{OK}&nbsp;{{}}",
        "colon": f"{OK}: {{}}",
        "dash": f"{OK} — {{}}",
        "comma": f"{OK}, {{}}",
    }
    return [
        Quiet(f"short-{name}", [bits(form.format(alarm(f"{tag} short-{name}")))], (), [alarm(f"{tag} short-{name}")])
        for name, form in forms.items()
    ]


def _measured(tag: str) -> list[Quiet]:
    """Exactly so many characters beside it as are quiet, and one more."""
    found = []
    for place, form in (("start", f"{OK} {{}}"), ("end", f"{{}}\n\n**{OK}**."), ("both", f"{OK}\n\n{{}} {OK}")):
        for length in (MOST, MOST + 1):
            words = alarm(f"{tag} {length}-{place}", length)
            shown = [words] if length > MOST else []
            found.append(Quiet(f"most-{place}-{length}", [bits(form.format(words))], shown, [words]))
    wide = "".join(alarm(f"{tag} wide", MOST - 1)).replace("u", "🌧")
    found.append(Quiet("most-wide", [bits(f"{OK}\n{wide}")], [], [wide]))
    lines = [alarm(f"{tag} lines {number}", 110) for number in range(3)]
    kept = "\n\n".join(lines)
    found.append(Quiet("most-lines", [bits(f"{OK}\n\n{kept}")], [kept], [kept]))
    return found


def _text(tag: str) -> list[Quiet]:
    """Where the token is no token, or there is none."""
    found = []
    for name, form in {
        "alert": "{}",
        "middle": f"It logs {OK} all day. {{}}",
        "middle-end": f"{{}} So much of {OK} for now, it says.",
        "longer": "HEARTBEAT_OKAY is no token. {}",
        "glued": "MY_HEARTBEAT_OK is another one. {}",
        "no-reply-middle": "It answers NO_REPLY to all. {}",
        "no-reply-small": "{} And then no_reply at all",
        "beginning": "HEARTBEAT {}",
        "no": "NO {}",
    }.items():
        text = form.format(alarm(f"{tag} text-{name}"))
        found.append(Quiet(f"text-{name}", [bits(text)], [text]))
    words = alarm(f"{tag} no-reply-end")
    found.append(Quiet("text-no-reply-end", [bits(f"{words}\n\nNO_REPLY")], [words]))
    words = alarm(f"{tag} thought")
    found.append(Quiet("text-thought", [bits(f"<think>{OK} {SECRET}</think>{words}")], [words]))
    return found


def _several(tag: str) -> list[Quiet]:
    """In several answers, with calls between; by tools; cut on the way."""
    a, b = alarm(f"{tag} several a"), alarm(f"{tag} several b")
    c, d = alarm(f"{tag} several c"), alarm(f"{tag} several d")
    e, f = alarm(f"{tag} several e"), alarm(f"{tag} several f", MOST + 1)
    g, h, i = alarm(f"{tag} several g"), alarm(f"{tag} several h"), alarm(f"{tag} several i")
    k, m, n = alarm(f"{tag} several k"), alarm(f"{tag} several m"), alarm(f"{tag} several n")
    return [
        Quiet("nothing", [[], []], (), [GAVE_NOTHING]),
        Quiet("stay-silent", [[Call("stay_silent", {"reason": "all is well"})]]),
        Quiet("stay-silent-words", [[Say(a), Call("stay_silent")]], [], []),
        Quiet("stay-silent-ok", [[Say(OK), Call("stay_silent")]]),
        Quiet("stay-silent-later", [[Say(b), LOOK], [Call("stay_silent")]], [], [b]),
        Quiet("thinking", [[Think(SECRET), Say(OK)]]),
        Quiet("looked", [[Say("I look."), LOOK], bits(OK)], [], ["I look."]),
        Quiet("looked-first", [LOOK, bits(f"**{OK}**")]),
        Quiet("looked-twice", [[Say(c), LOOK], [Say("One more."), LOOK], f"{OK}."], [], [c, "One more."]),
        Quiet("looked-behind", [[Say(OK), LOOK], d], [], [d]),
        Quiet(
            "looked-and-found", [[Say("I look around."), LOOK], e], [f"I look around.\n\n{e}"], ["I look around.", e]
        ),
        Quiet(
            "looked-and-much", [[Say("I look here."), LOOK], f"{f} {OK}"], [f"I look here.\n\n{f}"], ["I look here.", f]
        ),
        Quiet("looked-ended", [[Say(g), LOOK], []], [g]),
        Quiet("token-in-two", [[Say("HEARTBEAT_"), Stop("max_tokens")], "OK"], (), ["HEARTBEAT_", "OK"]),
        Quiet("cut-token", [Continuer(OK, "/cut-token", [1], 4)]),
        Quiet("cut-words", [Continuer(h, "/cut-words", [3], 8)], [h]),
        Quiet("tool-said", [tool(i), OK], [i]),
        Quiet("tool-said-twice", [tool(k), k], [k]),
        Quiet("tool-token", [tool(OK), OK]),
        Quiet("tool-token-bold", [tool(f"**{OK}**."), OK]),
        Quiet("tool-no-reply", [tool("NO_REPLY"), OK]),
        Quiet("file", [bits(f"{OK}\nMEDIA: notes.txt")], [], files=["notes.txt"]),
        Quiet("file-words", [bits(f"{m}\nMEDIA: notes.txt\n{OK}")], [m], files=["notes.txt"]),
        Quiet("file-no-reply", [bits("MEDIA: notes.txt\nNO_REPLY")], [], files=["notes.txt"]),
        Quiet("file-alert", [bits(f"{n}\nMEDIA: notes.txt")], [n], files=["notes.txt"]),
    ]


def quiet(tag: str) -> tuple[Quiet, ...]:
    """All of them; another tag gives other alerts, as the same one is not said twice."""
    return (*_bare(), *_short(tag), *_measured(tag), *_text(tag), *_several(tag))


CUT = (OK, f"**{OK}**", f"<b>{OK}</b>", f"`{OK}`.", "NO_REPLY", f"All is well. {OK}")
"""Quiet ones that come in two pieces, cut anywhere."""
