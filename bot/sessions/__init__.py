"""Sessions and their transcripts for people and programs: lists, search, export, import, pruning, forgetting."""
