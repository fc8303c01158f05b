"""What the service tells about itself: logs. Metrics and traces have their place here."""
