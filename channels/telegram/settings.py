"""What a Telegram account needs to know. `bot/wiring` makes it from the configuration."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What Telegram lets through before it answers 429: one message in `chat_interval` seconds per chat, so many per
    group and minute, so many per second in all."""

    chat_interval: float = 1.0
    group_per_minute: int = 20
    per_second: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings:
    """One bot. base_url and base_file_url: the token follows without a separator. Times are seconds.

    poll_timeout: how long Telegram may hold a poll that has nothing to tell. request_timeout: how long an answer to a
    send may take before its outcome counts as unknown. typing_timeout: the same for the sign of work, which a send to
    that chat waits for. retry_first, retry_most: pauses after failures, doubled from the first to the most.
    slow_retry: pause while another program polls, or the token is refused.
    """

    token: str = field(repr=False)
    base_url: str = "https://api.telegram.org/bot"
    base_file_url: str = "https://api.telegram.org/file/bot"
    poll_timeout: int = 30
    connect_timeout: float = 10.0
    request_timeout: float = 30.0
    typing_timeout: float = 3.0
    retry_first: float = 1.0
    retry_most: float = 30.0
    slow_retry: float = 30.0
    limits: Limits = Limits()
