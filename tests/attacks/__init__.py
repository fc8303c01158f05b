"""A model that obeys every order it reads, wherever it stands, in the real service: what happens then, and what not."""
