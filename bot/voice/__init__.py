"""Voice messages: what people say is written down, and answers are said aloud, by endpoints that speak OpenAI's words.

Neither is used unless the configuration names who does it (`transcription`, `speech`). `build` makes both.
"""

from agent.removal import remove_leftovers
from bot.config.model import Config
from bot.voice.speech import Speech
from bot.voice.transcription import Transcriber


def build(config: Config) -> tuple[Transcriber | None, Speech | None]:
    """Make what writes down and what speaks; None for what is not configured. Blocks for a moment."""
    writes, speaks, folder = config.transcription, config.speech, config.state / "voice"
    remove_leftovers(folder)  # what a crash has left
    transcriber = Transcriber(writes, folder) if writes.base_url or writes.command else None
    return transcriber, Speech(speaks, folder) if speaks.base_url else None
