"""Why something that was accepted is not answered, or something that was planned is not sent."""

from enum import StrEnum


class Cause(StrEnum):
    """Stored with the message or the delivery. `/status` and the tools of the model show the value."""

    # It is older than the configuration allows.
    AGE = "age"
    # People ended the work that it belongs to: by /stop, by /new or /reset, or by aborting the turn.
    STOP = "stop"
    RESET = "reset"
    ABORT = "abort"
    # People took the exchange that it belongs to back.
    UNDONE = "undone"
    # A newer message ended the run that answered it.
    INTERRUPT = "interrupt"
    # More messages waited than may. Of those that a turn is told in short, the cause is `TO_BE_NOTED`, then `NOTED`.
    CAP = "cap"
    # Its sender may not write to the bot.
    ACCESS = "access"
    # The group is not let in; its sender is not answered in that group; another bot wrote it.
    GROUP = "groups"
    MEMBER = "member"
    BOT = "bot"
    # Too many messages of bots came in a row without one of a person.
    BOTS = "bots"
    # It is held until its sender is let in by a code; the code has expired; an owner has blocked the sender.
    PAIRING = "pairing"
    EXPIRED = "expired"
    DENIED = "denied"
    # It is held until the history of its conversation has been read.
    BEHIND = "catch-up"
    # It is a command typed in a conversation that the bot is not a member of, so nothing can be sent there.
    OUTSIDE = "outside"
    # Of an edit or a deletion. Its message is not known; the text is the same; no model had seen the message, so that
    # it was replaced or withdrawn.
    TOO_LATE = "too late"
    NOTHING_CHANGED = "nothing changed"
    REPLACED = "replaced the message"
    WITHDREW = "withdrew the message"
    # The next turn is told of it; a turn has been told of it.
    TO_BE_NOTED = "to be noted"
    NOTED = "noted"
    # A hook has dropped the message, or forbidden to send the delivery.
    HOOK = "hook"
    # Its text was taken as the reason of a decision.
    PASSED_ON = "passed on"
    # Its stored payload is damaged.
    UNREADABLE = "unreadable"
    # Of a delivery. Neither `send_policy` nor `/send` lets what the turn says be sent.
    UNSENT = "sending is off"
    # Of a delivery. A message with the same text was sent; it is the preview of an answer that did not become final; it
    # edits a message that was never sent.
    SAID_ALREADY = "said already"
    NOT_SAID = "not said"
    NOTHING_TO_EDIT = "nothing to edit"
