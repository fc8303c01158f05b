"""The values and errors that the store takes and returns. `bot/store` implements it."""
