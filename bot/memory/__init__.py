"""The memory of rooms: its files, what finds them, and what is written into them."""
