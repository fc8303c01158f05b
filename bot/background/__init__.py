"""What the service does unasked: beats of the heartbeat, and jobs when they are due."""
