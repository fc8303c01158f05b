"""What the service keeps, as its parts see it: values, errors and protocols. `bot/store` implements it."""
