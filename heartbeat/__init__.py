"""When the assistant speaks up by itself: schedules, HEARTBEAT.md, quiet-reply rules. A place kept for them."""
