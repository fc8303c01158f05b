"""What people steer the bot with in the chat. See `registry`; one module per command."""
