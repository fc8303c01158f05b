"""Why something that was accepted is not answered, or something that was planned is not sent."""

from enum import StrEnum


class Cause(StrEnum):
    """As it is stored, with a message and with a delivery. `/status` and the tools of the model say it in this word."""

    # It is older than the configuration allows.
    AGE = "age"
    # People ended the work that it belongs to: by /stop, by /new or /reset, or by aborting the turn.
    STOP = "stop"
    RESET = "reset"
    ABORT = "abort"
    # Its sender may not write to the bot, or may not any more.
    ACCESS = "access"
    # The group is not let in; its sender is not among those who are answered in it; it is by another bot.
    GROUP = "groups"
    MEMBER = "member"
    BOT = "bot"
    # Too many messages of bots came in a row, and none of a person between them.
    BOTS = "bots"
    # It is held until its sender is let in by a code; the code expired; an owner shut the sender out instead.
    PAIRING = "pairing"
    EXPIRED = "expired"
    DENIED = "denied"
    # It is held until what was said before it has been read.
    BEHIND = "catch-up"
    # It is a command that was typed where the bot is not known to be. Nothing can be told in that conversation.
    OUTSIDE = "outside"
    # An edit or a deletion: of a message that is not known, without a change, of a message that no model had seen.
    TOO_LATE = "too late"
    NOTHING_CHANGED = "nothing changed"
    REPLACED = "replaced the message"
    WITHDREW = "withdrew the message"
    # The next turn is to be told of it; it was told.
    TO_BE_NOTED = "to be noted"
    NOTED = "noted"
    # Its words have become the reason of a decision.
    PASSED_ON = "passed on"
    # What is stored of it is damaged.
    UNREADABLE = "unreadable"
    # A delivery: a message that says the same was sent, it was a preview of what was never said, and an edit of what
    # was never sent.
    SAID_ALREADY = "said already"
    NOT_SAID = "not said"
    NOTHING_TO_EDIT = "nothing to edit"
