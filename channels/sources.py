"""What a delivery says or does, and about what: the value by which the ledger knows that it has planned it before.

Everything that is sent is planned under a source, and under each source once. So whatever is done anew after a crash,
or twice by mistake, is still sent once. This is the one place where the text of a source is put together; nothing takes
one apart.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from channels.message import Place


class SourceKind(StrEnum):
    """What the ledger is asked about a delivery besides its state."""

    # Words or a file of the model's answer, a preview of them too.
    ANSWER = "answer"
    # Reasoning, or calls of tools, shown beside an answer.
    SIDE_MESSAGE = "side message"
    # The receipt of a beat that had nothing to say.
    QUIET = "quiet"
    # What a call of a tool sends. It may go to another conversation than that in which its turn answers.
    TOOL = "tool"
    # What people are asked to decide or to answer, and what reminds them of it.
    REQUEST = "request"
    REMINDER = "reminder"
    # The reaction that says that a message was seen.
    ACKNOWLEDGEMENT = "acknowledgement"
    # What an owner is told of a send that was refused. If it is refused itself, nobody is told.
    REFUSED = "refused"
    # What a conversation is told of messages that may not have arrived there.
    MISSED = "missed"
    # Any other sentence of the service, and changes of messages.
    SENTENCE = "sentence"


@dataclass(frozen=True, slots=True)
class Source:
    """What a message says or does. A message that is too long for its platform is several deliveries of one source."""

    kind: SourceKind
    # Unique text. It is kept over restarts and versions, so none that was ever planned may change.
    key: str
    # The id of what it is about, where the ledger is asked for that: the request of REQUEST and REMINDER, the event key
    # of the message that an ACKNOWLEDGEMENT is for.
    subject: str = ""
    # The number of the answer in its turn, of ANSWER.
    step: int | None = None

    def also(self, name: object) -> "Source":
        """The source of the same thing, said in another place or with another name behind it."""
        return replace(self, key=f"{self.key}:{name}")


def answer(turn_id: str, step: int, number: int) -> Source:
    """A block of an answer, by its number from 0."""
    return Source(SourceKind.ANSWER, f"turn:{turn_id}:s{step}:b{number}", step=step)


def answer_file(turn_id: str, step: int, number: int) -> Source:
    """A file of an answer, by its number from 0."""
    return Source(SourceKind.ANSWER, f"turn:{turn_id}:s{step}:f{number}", step=step)


def side_message(turn_id: str, step: int, name: str) -> Source:
    """A message beside an answer. name: distinguishes it from the others beside the same answer."""
    return Source(SourceKind.SIDE_MESSAGE, f"turn:{turn_id}:s{step}:{name}")


def quiet(turn_id: str) -> Source:
    """The receipt of a beat that had nothing to say."""
    return Source(SourceKind.QUIET, f"turn:{turn_id}:ok")


def of_turn(turn_id: str, *names: object) -> Source:
    """A sentence of the service about a turn."""
    return sentence("turn", turn_id, *names)


def receipt(turn_id: str, step: int) -> Source:
    """The line under an answer that says what its turn has done."""
    return of_turn(turn_id, f"s{step}", "receipt")


def tool_message(turn_id: str, call_id: str) -> Source:
    """What a call of a tool sends."""
    return Source(SourceKind.TOOL, f"tool:{turn_id}:{call_id}")


def request(approval_id: str) -> Source:
    """What people are asked, in the conversation in which it came up."""
    return Source(SourceKind.REQUEST, f"ask:{approval_id}", approval_id)


def reminder(approval_id: str, name: object) -> Source:
    """What reminds somebody of a request. name: of what they wrote, which decided nothing."""
    return Source(SourceKind.REMINDER, f"ask:{approval_id}:0.{name}", approval_id)


def acknowledgement(place: Place, event_key: str) -> Source:
    """The reaction to a message."""
    key = f"ack:{place.channel}:{place.account}:{event_key}"
    return Source(SourceKind.ACKNOWLEDGEMENT, key, event_key)


def refused(reason: str, hour: int) -> Source:
    """What an owner is told of refused sends: once in an hour for each reason."""
    return Source(SourceKind.REFUSED, f"refused:{reason}:{hour}")


def missed(delivery_id: int) -> Source:
    """What a conversation is told of messages that may not have arrived. delivery_id: of what tells of them first."""
    return Source(SourceKind.MISSED, f"missed:{delivery_id}")


def frozen(since: int, conv_id: int) -> Source:
    """What a conversation is told of a freeze, once. since: when that began."""
    return sentence("frozen", since, conv_id)


def sentence(*names: object) -> Source:
    """Any other sentence of the service, by names that are unique together."""
    return Source(SourceKind.SENTENCE, ":".join(map(str, names)))


def piece_key(key: str, piece: int) -> str:
    """The name of one delivery of a message that may be several. piece: its number, from 0."""
    return f"{key}.{piece}" if piece else key
