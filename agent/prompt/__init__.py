"""The words of the system prompt, in `.md` files, and `build`, which puts them together."""
