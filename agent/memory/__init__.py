"""What was written down to be remembered: how it is searched, and how it stands beside a message."""
