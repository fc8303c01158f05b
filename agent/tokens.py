"""How many tokens a message takes, estimated: four characters each, images flat. Providers' own counts come later."""

from agent.message import Image, Message, Text, Thinking, ToolCall, ToolResult

_IMAGE_TOKENS = 1500
_OVERHEAD = 4


def estimate(message: Message) -> int:
    """Tokens of one message, at least 1."""
    characters = 0
    images = 0
    for part in message.parts:
        match part:
            case Text(text=text) | Thinking(text=text):
                characters += len(text)
            case ToolCall(name=name, arguments=arguments):
                characters += len(name) + len(arguments)
            case ToolResult(text=text, images=pictures):
                characters += len(text)
                images += len(pictures)
            case Image():
                images += 1
    return _OVERHEAD + characters // 4 + images * _IMAGE_TOKENS


def estimate_text(text: str) -> int:
    """Tokens of plain text."""
    return len(text) // 4 + 1
