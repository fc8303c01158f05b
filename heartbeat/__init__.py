"""When the assistant speaks up by itself: schedules, HEARTBEAT.md, what speaks against a beat, quiet answers."""
