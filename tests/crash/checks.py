"""What must be true when a world has come to rest, whatever happened in it; from the platform's point of view first."""

import json
import re
from collections import Counter, defaultdict
from typing import Any

from agent.context import INTERRUPTED, NOT_EXECUTED
from agent.images import FILES
from bot import wording
from bot.store.rows import said_id
from channels.sources import piece_key
from tests.crash.background_checks import check_background
from tests.crash.child_checks import SPAWNED, check_children
from tests.crash.hooked import UNSAID, check_heard, check_hooked
from tests.crash.platform import FILE
from tests.crash.script import Script, parse, words_of
from tests.crash.served import check_served
from tests.crash.world import World
from tests.serving import MOST_SENDS
from tests.stored import Like

_ASKED = ("state", "reason", "turn_id", "payload", "seq")
_SETTLES = re.compile(r"/answer |/approve \w+ again")
_REMEMBERED = re.compile(r"remembered by (\S+)")
_DROPPED = re.compile(r"(\d+) waiting message")


def check(world: World) -> list[str]:
    """Everything that is wrong; empty when all promises were kept."""
    wrong = list(world.violations)
    wrong += [f"called before the platform allowed it: {body}" for body in world.platform.early]
    for part in (
        _nothing_open,
        _once_and_in_order,
        _previews,
        _terminal,
        _edits,
        _files,
        _deleted,
        _answers,
        _commands,
        _calls,
        _decisions,
        _told,
        _sends,
        _transcripts,
        _events,
        _typing,
        _tries,
        _used,
        _balance,
        check_background,
        check_children,
        _memories,
        check_hooked,
        check_heard,
        check_served,
    ):
        wrong += part(world)
    return wrong


def _used(world: World) -> list[str]:
    """Every call that the model took is counted, also one that was cut."""
    rows, calls = world.stored.usage("turn_id", "input", "output"), world.answered
    return [] if len(rows) >= calls else [f"{calls} calls of the model, and only these were counted: {rows}"]


def _balance(world: World) -> list[str]:
    """Every message of a person is answered, or its sender was told why not."""
    asked = len(world.stored.messages("seq", kind={"message", "command", "button", "api"}))
    book = world.stored.balance()
    wrong = [f"not explained: {one}" for one in book.unexplained]
    wrong += [f"pending at rest: {account}" for account in book.accounts if account.pending]
    accepted = sum(account.accepted for account in book.accounts)
    return wrong + ([f"{accepted} in the book, {asked} in the inbox"] if accepted != asked and not wrong else [])


def _nothing_open(world: World) -> list[str]:
    stored = world.stored
    closed = {"done", "dropped", "failed", "stopped", "sent", "uncertain", "expired", "denied", "cut"}
    left = [
        *stored.messages("seq", "state"),
        *stored.turns("turn_id", "state"),
        *(row for row in stored.deliveries("source", "state") if not row[0].startswith("refused:")),
        *stored.calls("call_id", "state"),
    ]
    waiting = stored.approvals("approval_id", "state", state="open")
    return [f"open at rest: {name} is {state}" for name, state in (*left, *waiting) if state not in closed]


def _once_and_in_order(world: World) -> list[str]:
    """No delivery twice but for each send of unknown outcome, and never a fourth time; in the order of planning."""
    wrong = []
    planned = world.stored.deliveries("nonce", "delivery_id", "source")
    number = {nonce: (ident, source) for nonce, ident, source in planned}
    for chat in {shown.chat for shown in world.platform.shown}:
        shown = world.platform.visible(chat)
        for nonce, count in Counter(item.nonce for item in shown).items():
            doubt = world.in_doubt[nonce] + world.platform.doubtful[nonce]
            if count > min(MOST_SENDS, 1 + doubt):
                wrong.append(f"{count} copies of {number.get(nonce)}: {[item.body for item in shown]}")
        order = [number.get(item.nonce, (-1, "")) for item in shown]
        # what a freeze has held back comes behind what the service has said meanwhile
        held = any("is frozen" in item.body for item in shown)
        of_turns = [ident for ident, source in order if source.startswith(("turn:", "tool:"))]
        others = [ident for ident, source in order if not source.startswith(("turn:", "tool:"))]
        for one in (of_turns, others) if held else ([ident for ident, _ in order],):
            if one != sorted(one) or -1 in one:
                wrong.append(f"out of order, or not in the ledger, in chat {chat}: {one}")
    return wrong


def _previews(world: World) -> list[str]:
    """What was shown while it was written ends as the words that are final, or goes."""
    wrong = []
    for ident, body, state, step in world.stored.deliveries("platform_id", "body", "state", "step", action="preview"):
        shown = world.platform.shown[int(ident) - 1] if state == "sent" else None
        if step is None and state == "uncertain":  # nobody knows whether it was ever there
            continue
        if step is None or shown is None or shown.gone or shown.body != body:
            wrong.append(f"a preview of {body!r} ({state}, step {step}) stands there as {shown}")
    return wrong


def visible_words(world: World, chat: str) -> dict[str, list[int]]:
    """The words that can be seen in a chat, by token, copies of one delivery counted once.

    What nobody will ever know of may count as seen, whether it can be or not.
    """
    words: dict[str, list[int]] = defaultdict(list)
    chats = (chat, world.platform.moved.get(chat, chat))
    visible = {shown.nonce for place in chats for shown in world.platform.visible(place)}
    for nonce, body, state in world.stored.deliveries("nonce", "body", "state", chat=set(chats)):
        if nonce in visible or state == "uncertain":
            for token, number in words_of(body):
                words[token].append(number)
    return words


def _asked(world: World) -> list[tuple[str, Script, Any, dict[str, list[int]], list[str]]]:
    """Every message that wants an answer: token, script, its inbox row, and what can be seen in its place."""
    found = []
    for update in world.platform.updates:
        if update.moves_to:
            continue
        rows = world.stored.messages(*_ASKED, channel="telegram", event_key=update.event_key, kind="message")
        if update.edits and not rows:  # it made no turn of its own
            continue
        script = parse(json.loads(rows[0][3])["text"] if rows else update.text)  # an edit may have replaced it
        if script is not None:
            chats = (update.chat, world.platform.moved.get(update.chat, ""))
            bodies = [shown.body for chat in chats for shown in world.platform.visible(chat)]
            found.append((script.token, script, rows, visible_words(world, update.chat), bodies))
    for row in world.stored.messages(*_ASKED, channel="http"):
        script = parse(json.loads(row[3])["text"])
        if script is not None:
            said = [text for text, state in world.stored.deliveries("said", "state") if state != "expired"]
            words: dict[str, list[int]] = defaultdict(list)
            for token, number in words_of("".join(said)):
                words[token].append(number)
            found.append((script.token, script, [row], words, said))
    found += _asked_in_terminal(world)
    for key, (turn_id, text) in world.submitted.items():
        if not world.stored.messages(event_key=f"h:{key}", turn_id=turn_id):
            world.violations.append(f"submitted and not stored: {key} {text}")
    return found


def _asked_in_terminal(world: World) -> list[tuple[str, Script, Any, dict[str, list[int]], list[str]]]:
    """As _asked."""
    bodies = list(world.terminal.said.values())
    words: dict[str, list[int]] = defaultdict(list)
    for token, number in words_of("\n".join(bodies)):
        words[token].append(number)
    found = []
    for row in world.stored.messages(*_ASKED, channel="console"):
        script = parse(json.loads(row[3])["text"])
        if script is not None:
            found.append((script.token, script, [row], words, bodies))
    return found


def _terminal(world: World) -> list[str]:
    """Every answer and every sentence of the service was read as far as it was planned, and once."""
    planned: dict[str, str] = defaultdict(str)
    of_each = ("turn_id", "step", "said", "source", "piece")
    for turn_id, step, said, source, piece in world.stored.deliveries(*of_each, channel="console"):
        name = said_id(turn_id or piece_key(source, piece), source, piece) if step is None else f"{turn_id}/{step}"
        planned[name] += said
    shown = world.terminal.said
    differ = [name for name in {*planned, *shown} if planned[name].rstrip() != shown[name].rstrip()]
    return [f"planned {planned[name]!r}, in the terminal {shown[name]!r}" for name in differ]


def _edits(world: World) -> list[str]:
    """An edit is kept once; it replaces the words of a message that waits, else the next turn takes or mentions it."""
    wrong = []
    for edit in world.platform.updates:
        if not edit.edits:
            continue
        rows = world.stored.messages("state", "reason", event_key=edit.event_key)
        original = world.platform.updates[edit.edits - 1]
        (text,) = world.stored.texts(event_key=original.event_key)
        replaced = text == edit.text
        late = [[("done", reason)] for reason in (None, "to be noted", "noted")]
        if rows not in ([[("dropped", "replaced the message")]] if replaced else late):
            wrong.append(f"the edit {edit} is kept as {rows}, the message says {text}")
        undisturbed = not (world.died or world.drained or world.failed_commits)
        answering = "hold" in original.text
        if undisturbed and (answering == replaced or (answering and rows != late[0])):
            wrong.append(f"{edit} came while its message was {'answered' if answering else 'waiting'}: {rows}")
    return wrong


def _files(world: World) -> list[str]:
    """What came along is told of once for each turn, and as it is."""
    wrong = []
    for update in world.platform.updates:
        if not update.file:
            continue
        for (turn_id,) in world.stored.messages("turn_id", event_key=update.event_key, state="done"):
            lines = [body for (body,) in world.stored.entries("body", turn_id=turn_id, kind="user") if FILES in body]
            completed = world.stored.turns(turn_id=turn_id, outcome="completed")
            if len(lines) > 1 or (completed and not lines) or any(FILE.decode() not in body for body in lines):
                wrong.append(f"the file of {update.text!r} is told of as {lines}")
    return wrong


def _deleted(world: World) -> list[str]:
    """Of files that were deleted for lack of room, guest and owner are told, each once."""
    if world.disk is None:
        return []
    sent = sum(update.file for update in world.platform.updates)
    left = len([*(world.root / "workspace/people/telegram-B/media").glob("*/*")])
    bodies = [body for (body,) in world.stored.deliveries("body")]
    told = [sum(words in body for body in bodies) for words in ("so I deleted the oldest", "deleting the oldest files")]
    return (
        [] if left < sent and told == [1, 1] else [f"{left} of {sent} files are left, guest and owner were told {told}"]
    )


def _answered_with_a_later_one(world: World, turn_id: str | None, seq: int) -> bool:
    """Whether a message has no answer of its own: what was missed in one conversation is one turn, or collected."""
    if not (world.listening or world.mode == "collect"):
        return False
    taken = world.stored.messages("seq", turn_id=turn_id, kind="message", state="done")
    return turn_id is not None and any(later > seq for (later,) in taken)


def _answers(world: World) -> list[str]:
    wrong = []
    refused = world.platform.faulted["refused"]
    for token, script, rows, words, bodies in _asked(world):
        if len(rows) != 1:
            wrong.append(f"{token} is stored {len(rows)} times")
            continue
        state, reason, turn_id, payload, seq = rows[0]
        seen, whole = words[token], list(range(script.words))
        if state == "dropped":
            if reason not in ("stop", "reset", "abort", "undone", "hook") or (seen and not script.steering):
                wrong.append(f"{token} was dropped ({reason}) with {seen} visible")
            continue
        if _answered_with_a_later_one(world, turn_id, seq):
            lines = [body for (body,) in world.stored.entries("body", turn_id=turn_id, kind="user")]
            if seen or sum(json.loads(payload)["text"] in line for line in lines) != 1:
                wrong.append(f"{token} was missed, with {seen} visible, and the model was shown {lines}")
            continue
        if world.stored.undone(turn_id=turn_id):
            rows = world.stored.deliveries("body", "state", "attempts", turn_id=turn_id)
            doubtful = [body for body, became, attempts in rows if became == "uncertain" or attempts > 1]
            known = {number for body in doubtful for _, number in words_of(body)}
            named = any(
                "may still be there" in text for (text,) in world.stored.deliveries("said", source=Like("cmd:%"))
            )
            if set(seen) - known or (doubtful and not named) or world.stored.entries(turn_id=turn_id, hidden=0):
                wrong.append(f"{token} was taken back, and {seen} is visible, or its lines are: {bodies}")
            continue
        outcome, error_kind = world.stored.turns("outcome", "error_kind", turn_id=turn_id)[0]
        if seen != whole[: len(seen)] and not refused:
            wrong.append(f"{token}: words missing, repeated or out of order: {seen}")
        if world.hooked and token == UNSAID:
            whole = []
        if outcome == "completed" and seen != whole and not refused:
            wrong.append(f"{token} is done, and {len(seen)} of {len(whole)} words are visible: {bodies}")
        elif outcome in ("failed", "timeout"):
            notices = {wording.failure(error_kind, to_owner=owner) for owner in (True, False)}
            told = world.stored.deliveries("state", "attempts", source=f"turn:{turn_id}:error")
            if not any(notice in body for body in bodies for notice in notices) and told not in (
                [("failed", 1)],
                [("uncertain", MOST_SENDS)],
            ):
                wrong.append(f"{token} failed ({error_kind}) and nobody was told: {bodies}")
        elif outcome not in ("completed", "aborted"):
            wrong.append(f"{token} ended as {outcome}")
    return wrong


def _commands(world: World) -> list[str]:
    """Each command is answered once, and says how many messages it dropped."""
    wrong = []
    said = 0
    for update in world.platform.updates:
        if update.text.startswith("/"):
            (seq, state), *_ = world.stored.messages("seq", "state", message_id=str(update.update_id))
            replies = world.stored.deliveries("said", "state", "attempts", source=f"cmd:{seq}")
            became = [(state, attempts if state == "uncertain" else 0) for _, state, attempts in replies]
            if not became and _SETTLES.match(update.text):
                became = [("sent", 0)]  # by what it leads to: see _told
            if state != "done" or became not in ([("sent", 0)], [("uncertain", MOST_SENDS)]):
                wrong.append(f"{update.text} is {state}, answered by {replies}")
            said += sum(int(count) for text, _, _ in replies for count in _DROPPED.findall(text))
    dropped = len(world.stored.messages(state="dropped", reason={"stop", "reset", "undone"}, channel="telegram"))
    if dropped != said:
        wrong.append(f"{dropped} messages dropped, {said} said to be")
    return wrong


def _calls(world: World) -> list[str]:
    wrong = [f"{key} executed {count} times" for key, count in world.executed.items() if count > 1]
    results = world.stored.results()
    turns = dict(world.stored.turns("turn_id", "state"))
    columns = ("call_id", "name", "state", "turn_id", "used_at", "args")
    for call_id, name, state, turn_id, used_at, arguments in world.stored.calls(*columns):
        turn = turns[turn_id]
        found = results.pop(call_id, [])
        if len(found) != 1:
            wrong.append(f"call {call_id} has {len(found)} results")
            continue
        text, ran = found[0], world.executed[call_id]
        if name == "late":  # may have been asked again: the same by another call
            ran = world.executed[json.loads(arguments)["key"]] if used_at else 0
        by_store = name in ("sessions_spawn", "sessions_send")  # of these see child_checks
        if text == NOT_EXECUTED and (ran or turn == "done") and not by_store:
            wrong.append(f"call {call_id} of a {turn} turn is told as not executed, and ran {ran} times")
        elif text == INTERRUPTED and (
            state != "cut" or not (world.died or world.drained or world.failed_commits or turn == "stopped")
        ):
            wrong.append(f"call {call_id} is told as interrupted without a reason ({state})")
        elif text.startswith("counted") and (state != "done" or ran != 1):
            wrong.append(f"call {call_id} is done, is {state}, ran {ran} times")
        elif text not in (NOT_EXECUTED, INTERRUPTED) and name != "nope" and state == "failed" and ran:
            wrong.append(f"call {call_id} failed and ran {ran} times")
    wrong += [f"results without a call: {call_id}" for call_id in results]
    return wrong


def _memories(world: World) -> list[str]:
    """What was kept stands in its file once, what waits or was dropped nowhere; each call made at most one memory."""
    files = {path: path.read_text() for path in (world.root / "workspace").glob("**/memory/*.md")}
    text, wrong, known = "".join(files.values()), [], Counter[str]()
    for state, entry in world.stored.memories("state", "entry"):
        known[_REMEMBERED.findall(entry)[0]] += 1
        if text.count(entry) != (state == "kept") or state not in ("kept", "pending"):
            wrong.append(f"{entry!r} is {state}, and stands {text.count(entry)} times in its file")
    wrong += [f"{call_id} became {count} memories" for call_id, count in known.items() if count > 1]
    wrong += [f"{one} stands in a file without a row" for one in _REMEMBERED.findall(text) if one not in known]
    decided = any("is gone" in body or "are gone" in body for _, body in world.stored.deliveries("source", "body"))
    for call_id, result in world.stored.results().items():
        if call_id not in known and "emembered in" in result[0] and not decided:
            wrong.append(f"{call_id} was told that it is remembered, and is not")
    return wrong


def _decisions(world: World) -> list[str]:
    """A call about which a person must decide runs if they allowed it, and else never; a decision is used once."""
    wrong = []
    decided: dict[str, str] = {}
    for call_id, state, ask in world.stored.approvals("call_id", "state", "ask"):
        together = [one["call_id"] for one in json.loads(ask).get("calls", ())]
        decided |= dict.fromkeys(together or [call_id], state)
    used: Counter[str] = Counter()
    asking = world.stored.calls("call_id", "state", "used_at", "args", name={"ask", "late", "ask_person"})
    for call_id, state, used_at, arguments in asking:
        verdict, key = decided.get(call_id), json.loads(arguments).get("key", call_id)
        used[key] += used_at is not None
        allowed = verdict in ("once", "always", "answered")
        if (used_at and not allowed) or (verdict == "denied" and state == "done"):
            wrong.append(f"call {call_id} is {state}, decided as {verdict}, used at {used_at}")
        if allowed and not used_at and state != "cut":
            wrong.append(f"call {call_id} was allowed and is {state}")
    for key, count in used.items():
        if count > 1 or world.executed[key] > count:
            wrong.append(f"{key} ran {world.executed[key]} times, by {count} decisions")
    return wrong


def _told(world: World) -> list[str]:
    """What was asked shows in the end what has become of it, and nothing more to decide."""
    wrong = []
    for approval_id, state in world.stored.approvals("approval_id", "state"):
        told = world.stored.deliveries("platform_id", "state", source=f"ask:{approval_id}", action="send")
        if len(told) != 1:
            wrong.append(f"{approval_id} ({state}) was asked by {told}")
        for ident, sent in told:
            shown = world.platform.shown[int(ident) - 1] if sent == "sent" else None
            if shown is not None and f"/approve {approval_id[:8]}" in shown.body:
                wrong.append(f"{approval_id} is {state}, and stands there as {shown.body!r}")
    return wrong


def _sends(world: World) -> list[str]:
    """A message of a call stands in the ledger once, and the call is told what became of it; what was sent to somebody
    else is told there once."""
    wrong = []
    told = world.stored.results()
    for call_id, name, arguments in world.stored.calls("call_id", "name", "args", name={"send", "message"}):
        text = told[call_id][-1]
        rows = world.stored.deliveries("state", source=Like(f"tool:%:{call_id}"))
        possible = ("sent",) if "was sent." in text or text.startswith("Sent") else ("sent", "uncertain")
        silent = text in (INTERRUPTED, NOT_EXECUTED)
        noted = world.stored.messages("reason", kind="event", event_key=Like(f"tool:%:{call_id}"))
        elsewhere = name == "message" and '"to"' in arguments
        lines = [body for (body,) in world.stored.entries("body", kind="user") if f"sent {call_id}" in body]
        if len(noted) != (elsewhere and not silent) or len(lines) != noted.count(("noted",)):
            wrong.append(f"call {call_id} is noted as {noted} and told as {lines}")
        if len(rows) != (not silent) or any(state not in possible for (state,) in rows):
            wrong.append(f"call {call_id} is told {text!r}, the ledger has {rows}")
    return wrong


def _transcripts(world: World) -> list[str]:
    """Lines without gaps, but where beats and jobs were moved; the words of a finished turn are the whole answer, to
    the character."""
    wrong = []
    texts: dict[str, str] = defaultdict(str)
    also: set[str] = set()
    last: dict[str, int] = {}
    unasked = {turn_id for (turn_id,) in world.stored.turns("turn_id", kind={"beat", "job"})}
    moved = {
        transcript for transcript, turn_id in world.stored.entries("transcript_id", "turn_id") if turn_id in unasked
    }
    for transcript, seq, turn_id, kind, body in world.stored.entries("transcript_id", "seq", "turn_id", "kind", "body"):
        if seq != last.get(transcript, 0) + 1 and transcript not in moved:
            wrong.append(f"a gap in {transcript} before {seq}")
        last[transcript] = seq
        text = "".join(part.get("text", "") for part in json.loads(body)["parts"])
        if kind in ("assistant", "assistant_cut"):
            texts[turn_id] += text
        if kind == "user" and (script := parse(text)) is not None and script.steering:
            also.add(turn_id)
    for token, script, rows, _, _ in _asked(world):
        for state, _, turn_id, _, seq in rows:
            ended = world.stored.turns("outcome", turn_id=turn_id)
            if state != "done" or not ended or script.steering or turn_id in also:
                continue
            if _answered_with_a_later_one(world, turn_id, seq):
                continue
            whole = "".join(step.text for step in script.steps)
            said = texts[turn_id]
            if said != whole and (ended[0][0] == "completed" or not whole.startswith(said)):
                wrong.append(f"{token}: the transcript says {said!r} instead of {whole!r}")
    return wrong


def _events(world: World) -> list[str]:
    """agent_start and agent_end exactly once per run, and around each pause of one that is parked."""
    wrong = []
    kinds: dict[str, list[str]] = defaultdict(list)
    for event in world.stored.events():
        kind = "parked" if event.get("outcome") == "parked" else event["type"]
        if not event["type"].startswith("compaction_"):  # these may come beside a turn, and after it
            kinds[event["run"]["turn_id"]].append(kind)
    for turn_id, epoch in world.stored.turns("turn_id", "epoch"):
        found = kinds[turn_id]
        if not found and world.platform.leapt:  # forgotten meanwhile
            continue
        borders = [kind for kind in found if kind in ("agent_start", "agent_end", "parked")]
        # one that was parked may be stopped without going on
        whole = re.fullmatch("(agent_start parked )*(agent_start )?agent_end", " ".join(borders))
        if not whole or found[-1] != "agent_end" or (epoch and found[0] != "agent_start"):
            wrong.append(f"events of a turn claimed {epoch} times: {found}")
    return wrong


def _typing(world: World) -> list[str]:
    """Never after the last block; a process that died while it showed the sign could not follow it with anything."""
    wrong: list[str] = []
    if world.died:
        return wrong
    for chat in {shown.chat for shown in world.platform.shown} - set(world.platform.moved):
        behind = world.platform.shown[world.platform.changed_at.get(chat, 0) :]
        if any(shown.typing for shown in [shown for shown in behind if shown.chat == chat][-1:]):
            wrong.append(f"the sign of work is the last thing in chat {chat}")
    return wrong


def _tries(world: World) -> list[str]:
    """Two crashes of a turn and it is given up, once; a drain is no crash."""
    wrong = []
    for token, lives in world.tries.items():
        if token in world.by_themselves:  # the same is asked for in several turns
            continue
        # a turn that is parked, or that a freeze has put back, does not die with its process
        pauses = len(world.stored.approvals()) + sum("/freeze" in text for text in world.stored.texts())
        if len(lives) > 2 + world.drained + pauses:
            wrong.append(f"{token} was tried in {len(lives)} lives")
    unwritten = world.drained if world.failed_commits else 0  # runs that could not be given back
    turns = world.stored.turns("turn_id", "state", "crashes", "error_kind", "kind")
    children = {turn_id for (turn_id,) in world.stored.turns("turn_id", session_key=SPAWNED)}
    for turn_id, state, crashes, kind, of in turns:
        notices = len(world.stored.deliveries(source=f"turn:{turn_id}:error"))
        if of in ("beat", "job") or turn_id in children:  # see background_checks
            notices = state == "failed"
        if crashes > world.died + unwritten or (crashes >= 2) != (kind == "crash") or notices != (state == "failed"):
            wrong.append(f"turn {turn_id}: {crashes} crashes, {world.died} deaths, {state} ({kind}), {notices} notices")
    return wrong
