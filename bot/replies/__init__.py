"""From the words of the model to the messages that people are shown."""
