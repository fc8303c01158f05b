"""Sandboxes, which bound what of the machine a command can see, change and reach.

`base` says what a command may do, `backends` are the sandboxes of the operating systems, and `proof` chooses the first
of them that holds a command that tries to escape. docs/security.md says what is promised.
"""
