"""What carries out the calls of a step: their groups, what happens to each, and the guard against circles."""
