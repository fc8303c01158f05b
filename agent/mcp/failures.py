"""What went wrong with a server, for people."""

from pydantic import ValidationError

_LONGEST_REASON = 1000


def reason(error: BaseException) -> str:
    """Return why something failed, in one sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it has not answered in time."
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"what it sent is against the protocol: {'.'.join(map(str, first['loc']))}: {first['msg']}."
    text = " ".join(str(error)[:_LONGEST_REASON].split()) or f"the connection broke ({type(error).__name__})"
    return text if text.endswith(".") else f"{text}."
