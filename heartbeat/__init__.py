"""When the assistant speaks up by itself: schedules, HEARTBEAT.md, quiet-reply rules. Its place; nothing is built yet."""
