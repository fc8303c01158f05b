"""What the model can do on Slack with the `message` tool; `workspace` carries out what is no delivery."""

from channels.actions import THREADED, ToolAction

ACTIONS: tuple[ToolAction, ...] = (
    *THREADED,
    ToolAction("read", "the last messages of a conversation or thread", (), ("to", "thread", "limit", "before")),
    ToolAction("pin", "a message", (), ("to", "message_id")),
    ToolAction("unpin", "a message", (), ("to", "message_id")),
    ToolAction("channel_info", "name, topic and members of a conversation", (), ("to",)),
    ToolAction("user_info", "name, title and time zone of somebody", ("person",)),
)
