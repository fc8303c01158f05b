"""What must be true when a world has come to rest, whatever happened in it; from the platform's point of view first."""

import json
import re
from collections import Counter, defaultdict
from typing import Any

from agent.cut import INTERRUPTED, NOT_EXECUTED
from bot import wording
from bot.store.rows import said_id
from tests.crash.script import Script, parse, words_of
from tests.crash.world import World
from tests.serving import MOST_SENDS

_DROPPED = re.compile(r"(\d+) waiting message")


def check(world: World) -> list[str]:
    """Everything that is wrong; empty when all promises were kept."""
    wrong = list(world.violations)
    wrong += [f"called before the platform allowed it: {body}" for body in world.platform.early]
    for part in (
        _nothing_open,
        _once_and_in_order,
        _terminal,
        _edits,
        _answers,
        _commands,
        _calls,
        _decisions,
        _sends,
        _transcripts,
        _events,
        _typing,
        _tries,
    ):
        wrong += part(world)
    return wrong


def _nothing_open(world: World) -> list[str]:
    queries = {
        "inbox": "SELECT seq, state FROM inbox WHERE state NOT IN ('done','dropped')",
        "turn": "SELECT turn_id, state FROM turn WHERE state NOT IN ('done','failed','stopped')",
        "delivery": "SELECT source, state FROM delivery WHERE state NOT IN ('sent','uncertain','failed','expired')"
        " AND source NOT LIKE 'refused:%'",
        "tool_call": "SELECT call_id, state FROM tool_call WHERE state IN ('asked','waiting','running')",
        "approval": "SELECT approval_id, call_id FROM approval WHERE state='open'",
    }
    return [f"open at rest: {table} {rows}" for table, sql in queries.items() if (rows := world.ask(sql))]


def _once_and_in_order(world: World) -> list[str]:
    """No delivery twice but for each send of unknown outcome, and never a fourth time; in the order of planning."""
    wrong = []
    number = {
        nonce: (ident, source) for nonce, ident, source in world.ask("SELECT nonce, delivery_id, source FROM delivery")
    }
    for chat in {shown.chat for shown in world.platform.shown}:
        shown = world.platform.visible(chat)
        for nonce, count in Counter(item.nonce for item in shown).items():
            doubt = world.in_doubt[nonce] + world.platform.doubtful[nonce]
            if count > min(MOST_SENDS, 1 + doubt):
                wrong.append(f"{count} copies of {number.get(nonce)}: {[item.body for item in shown]}")
        order = [number[item.nonce][0] if item.nonce in number else -1 for item in shown]
        if order != sorted(order) or -1 in order:
            wrong.append(f"out of order, or not in the ledger, in chat {chat}: {order}")
    return wrong


def visible_words(world: World, chat: str) -> dict[str, list[int]]:
    """The words that can be seen in a chat, by token, copies of one delivery counted once.

    What nobody will ever know of may count as seen, whether it can be or not.
    """
    words: dict[str, list[int]] = defaultdict(list)
    chats = (chat, world.platform.moved.get(chat, chat))
    visible = {shown.nonce for place in chats for shown in world.platform.visible(place)}
    for nonce, body, state in world.ask(
        "SELECT nonce, body, state FROM delivery JOIN conversation USING (conv_id) WHERE chat IN (?,?)"
        " ORDER BY delivery_id",
        *chats,
    ):
        if nonce in visible or state == "uncertain":
            for token, number in words_of(body):
                words[token].append(number)
    return words


def _asked(world: World) -> list[tuple[str, Script, Any, dict[str, list[int]], list[str]]]:
    """Every message that wants an answer: token, script, its inbox row, and what can be seen in its place."""
    found = []
    columns = "state, reason, turn_id, payload, seq"
    for update in world.platform.updates:
        if update.edits or update.moves_to:
            continue
        rows = world.ask(f"SELECT {columns} FROM inbox WHERE channel='telegram' AND event_key=?", update.event_key)
        script = parse(json.loads(rows[0][3])["text"] if rows else update.text)  # an edit may have replaced it
        if script is not None:
            chats = (update.chat, world.platform.moved.get(update.chat, ""))
            bodies = [shown.body for chat in chats for shown in world.platform.visible(chat)]
            found.append((script.token, script, rows, visible_words(world, update.chat), bodies))
    for row in world.ask(f"SELECT {columns} FROM inbox WHERE channel='http'"):
        script = parse(json.loads(row[3])["text"])
        if script is not None:
            said = world.ask("SELECT said FROM delivery WHERE state <> 'expired' ORDER BY delivery_id")
            words: dict[str, list[int]] = defaultdict(list)
            for token, number in words_of("".join(text for (text,) in said)):
                words[token].append(number)
            found.append((script.token, script, [row], words, [text for (text,) in said]))
    found += _asked_in_terminal(world, columns)
    for key, (turn_id, text) in world.submitted.items():
        if not world.ask("SELECT 1 FROM inbox WHERE event_key=? AND turn_id=?", f"h:{key}", turn_id):
            world.violations.append(f"submitted and not stored: {key} {text}")
    return found


def _asked_in_terminal(world: World, columns: str) -> list[tuple[str, Script, Any, dict[str, list[int]], list[str]]]:
    """As _asked."""
    bodies = list(world.terminal.said.values())
    words: dict[str, list[int]] = defaultdict(list)
    for token, number in words_of("\n".join(bodies)):
        words[token].append(number)
    found = []
    for row in world.ask(f"SELECT {columns} FROM inbox WHERE channel='console'"):
        script = parse(json.loads(row[3])["text"])
        if script is not None:
            found.append((script.token, script, [row], words, bodies))
    return found


def _terminal(world: World) -> list[str]:
    """Every answer and every sentence of the service was read as far as it was planned, and once."""
    planned: dict[str, str] = defaultdict(str)
    for turn_id, step, said, source in world.ask(
        "SELECT coalesce(turn_id, source), step, said, source FROM delivery JOIN conversation USING (conv_id)"
        " WHERE channel='console' ORDER BY delivery_id"
    ):
        planned[said_id(turn_id, source) if step is None else f"{turn_id}/{step}"] += said
    shown = world.terminal.said
    differ = [name for name in {*planned, *shown} if planned[name].rstrip() != shown[name].rstrip()]
    return [f"planned {planned[name]!r}, in the terminal {shown[name]!r}" for name in differ]


def _edits(world: World) -> list[str]:
    """An edit is kept once; it replaces the words of a message that waits, and of no other."""
    wrong = []
    for edit in world.platform.updates:
        if not edit.edits:
            continue
        rows = world.ask("SELECT state, reason FROM inbox WHERE event_key=?", edit.event_key)
        original = world.platform.updates[edit.edits - 1]
        ((payload,),) = world.ask("SELECT payload FROM inbox WHERE event_key=?", original.event_key)
        replaced = json.loads(payload)["text"] == edit.text
        if rows != [("dropped", "replaced the message" if replaced else "edited too late")]:
            wrong.append(f"the edit {edit} is kept as {rows}, the message says {payload}")
        undisturbed = not (world.died or world.drained or world.failed_commits)
        if undisturbed and not replaced:
            wrong.append(f"{edit} came while its message waited")
    return wrong


def _answers(world: World) -> list[str]:
    wrong = []
    refused = world.platform.faulted["refused"]
    for token, script, rows, words, bodies in _asked(world):
        if len(rows) != 1:
            wrong.append(f"{token} is stored {len(rows)} times")
            continue
        state, reason, turn_id, _, _ = rows[0]
        seen, whole = words[token], list(range(script.words))
        if state == "dropped":
            if reason not in ("stop", "reset", "abort") or (seen and not script.steering):
                wrong.append(f"{token} was dropped ({reason}) with {seen} visible")
            continue
        outcome, error_kind = world.ask("SELECT outcome, error_kind FROM turn WHERE turn_id=?", turn_id)[0]
        if seen != whole[: len(seen)] and not refused:
            wrong.append(f"{token}: words missing, repeated or out of order: {seen}")
        if outcome == "completed" and seen != whole and not refused:
            wrong.append(f"{token} is done, and {len(seen)} of {len(whole)} words are visible: {bodies}")
        elif outcome in ("failed", "timeout"):
            notice = wording.CRASHED_TWICE if error_kind == "crash" else wording.failure(error_kind)
            told = world.ask("SELECT state, attempts FROM delivery WHERE source=?", f"turn:{turn_id}:error")
            if not any(notice in body for body in bodies) and told not in (
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
            (seq, state), *_ = world.ask("SELECT seq, state FROM inbox WHERE message_id=?", str(update.update_id))
            replies = world.ask("SELECT said, state FROM delivery WHERE source=?", f"cmd:{seq}")
            if state != "done" or [reply[1] for reply in replies] != ["sent"]:
                wrong.append(f"{update.text} is {state}, answered by {replies}")
            said += sum(int(count) for text, _ in replies for count in _DROPPED.findall(text))
    dropped = world.ask(
        "SELECT count(*) FROM inbox WHERE state='dropped' AND reason IN ('stop','reset') AND channel='telegram'"
    )
    if dropped and dropped[0][0] != said:
        wrong.append(f"{dropped[0][0]} messages dropped, {said} said to be")
    return wrong


def _calls(world: World) -> list[str]:
    wrong = [f"{key} executed {count} times" for key, count in world.executed.items() if count > 1]
    results: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (body,) in world.ask("SELECT body FROM entry WHERE kind='tool_result'"):
        for part in json.loads(body)["parts"]:
            results[part["call_id"]].append(part)
    for call_id, name, state, turn in world.ask(
        "SELECT call_id, name, tool_call.state, turn.state FROM tool_call JOIN turn USING (turn_id)"
    ):
        found = results.pop(call_id, [])
        if len(found) != 1:
            wrong.append(f"call {call_id} has {len(found)} results")
            continue
        text, ran = found[0]["text"], world.executed[call_id]
        if text == NOT_EXECUTED and (ran or turn == "done"):
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


def _decisions(world: World) -> list[str]:
    """A call about which a person must decide runs if they allowed it, and else never; a decision is used once."""
    wrong = []
    asking = "tool_call.name IN ('ask','late')"
    decided = dict(world.ask("SELECT call_id, state FROM approval"))
    for call_id, state, used_at in world.ask(f"SELECT call_id, state, used_at FROM tool_call WHERE {asking}"):
        verdict, ran = decided.get(call_id), world.executed[call_id]
        allowed = verdict in ("once", "always")
        if (ran and not used_at) or (used_at and not allowed) or (verdict == "denied" and state == "done"):
            wrong.append(f"call {call_id} is {state}, decided as {verdict}, used at {used_at}, ran {ran} times")
        if allowed and not used_at and state != "cut":
            wrong.append(f"call {call_id} was allowed and is {state}")
    return wrong


def _sends(world: World) -> list[str]:
    """A message of a call stands in the ledger once, and an interrupted call is told what became of it."""
    wrong = []
    told = {}
    for (body,) in world.ask("SELECT body FROM entry WHERE kind='tool_result'"):
        told |= {part["call_id"]: part["text"] for part in json.loads(body)["parts"]}
    fates = {"was sent": ("sent",), "will be sent": ("sent", "uncertain"), "which nobody knows": ("sent", "uncertain")}
    for (call_id,) in world.ask("SELECT call_id FROM tool_call WHERE name='send'"):
        text = told[call_id]
        rows = world.ask("SELECT state FROM delivery WHERE source LIKE ?", f"tool:%:{call_id}:0")
        possible = next((states for words, states in fates.items() if f"{words}." in text), ("sent", "uncertain"))
        silent = text in (INTERRUPTED, NOT_EXECUTED)
        if len(rows) != (not silent) or any(state not in possible for (state,) in rows):
            wrong.append(f"call {call_id} is told {text!r}, the ledger has {rows}")
    return wrong


def _transcripts(world: World) -> list[str]:
    """Lines without gaps; the words of a finished turn are the whole answer, to the character."""
    wrong = []
    texts: dict[str, str] = defaultdict(str)
    also: set[str] = set()
    last: dict[str, int] = {}
    for transcript, seq, turn_id, kind, body in world.ask(
        "SELECT transcript_id, seq, turn_id, kind, body FROM entry ORDER BY transcript_id, seq"
    ):
        if seq != last.get(transcript, 0) + 1:
            wrong.append(f"a gap in {transcript} before {seq}")
        last[transcript] = seq
        text = "".join(part.get("text", "") for part in json.loads(body)["parts"])
        if kind in ("assistant", "assistant_cut"):
            texts[turn_id] += text
        if kind == "user" and (script := parse(text)) is not None and script.steering:
            also.add(turn_id)
    for token, script, rows, _, _ in _asked(world):
        for state, _, turn_id, _, _ in rows:
            ended = world.ask("SELECT outcome FROM turn WHERE turn_id=?", turn_id)
            if state != "done" or not ended or script.steering or turn_id in also:
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
    for turn_id, body in world.ask("SELECT turn_id, body FROM event ORDER BY seq"):
        event = json.loads(body)
        kinds[turn_id].append("parked" if event.get("outcome") == "parked" else event["type"])
    for turn_id, epoch in world.ask("SELECT turn_id, epoch FROM turn"):
        found = kinds[turn_id]
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
        if [shown for shown in world.platform.shown if shown.chat == chat][-1].typing:
            wrong.append(f"the sign of work is the last thing in chat {chat}")
    return wrong


def _tries(world: World) -> list[str]:
    """Two crashes of a turn and it is given up, once; a drain is no crash."""
    wrong = []
    for token, lives in world.tries.items():
        pauses = len(world.ask("SELECT 1 FROM approval"))  # a turn that is parked does not die with its process
        if len(lives) > 2 + world.drained + pauses:
            wrong.append(f"{token} was tried in {len(lives)} lives")
    unwritten = world.drained if world.failed_commits else 0  # runs that could not be given back
    for turn_id, state, crashes, kind in world.ask("SELECT turn_id, state, crashes, error_kind FROM turn"):
        notices = world.ask("SELECT count(*) FROM delivery WHERE source=?", f"turn:{turn_id}:error")[0][0]
        if crashes > world.died + unwritten or (crashes >= 2) != (kind == "crash") or notices != (state == "failed"):
            wrong.append(f"turn {turn_id}: {crashes} crashes, {world.died} deaths, {state} ({kind}), {notices} notices")
    return wrong
