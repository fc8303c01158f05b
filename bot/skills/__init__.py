"""The skills of the workspace: which of them are used where, how they are installed, and the commands about them."""
