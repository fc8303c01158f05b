"""What is asked of a store about people: who was let in or shut out, and who waits for that."""
