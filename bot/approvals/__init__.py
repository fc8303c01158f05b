"""What people decide about: calls of tools, and questions of the model."""
