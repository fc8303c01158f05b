"""What a changed configuration does to a running service, and the command that shows and changes it."""
