"""How what a run says is shown to people: how answers are cut, which messages are replies, and when a beat is quiet."""

from dataclasses import dataclass

from bot.clock import Clock
from bot.config.background import Heartbeat
from bot.people.accounts import Accounts
from bot.persistence.turns import Turn, TurnKind
from bot.replies.beat_words import BeatWords
from bot.store.store import Store
from channels.settings import ReplyTo, Streaming

# Milliseconds within which an alert is not said twice in a row.
_DAY = 24 * 3_600_000
# A program wants the answer in one piece, and nothing is said before it is whole.
_WHOLE = Streaming.model_validate({"min_chars": 60_000, "max_chars": 100_000, "break": "message_end"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """Answers by the configuration of the account on which a turn answers."""

    accounts: Accounts
    heartbeat: Heartbeat
    store: Store
    clock: Clock

    def shown(self, turn: Turn) -> tuple[Streaming, ReplyTo]:
        """How the answers of a turn are cut, and which of their messages are shown as replies."""
        account = self.accounts.like(turn.place)
        cutting, replying = (account.section.cutting(), account.section.replying()) if account else (_WHOLE, "off")
        return cutting.model_copy(update={"mode": "off"}) if turn.kind is TurnKind.BEAT else cutting, replying

    def beat_words(self, turn: Turn) -> BeatWords | None:
        """What judges the words of a beat; None for other turns."""
        if turn.kind is not TurnKind.BEAT:
            return None
        account = self.accounts.like(turn.place)
        shows = self.heartbeat.shown_by(account.section if account else None)
        return BeatWords(
            self.heartbeat.ack_max_chars,
            shows,
            lambda: self.store.schedules.last_alert(turn.turn_id, turn.conv_id, self.clock.now() - _DAY),
        )
