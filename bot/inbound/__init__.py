"""What happens to a message before anybody thinks about it. See `pipeline`."""
