"""Where commands run so that they can do no harm: in what of the machine they see, and change, and reach.

`base` has the values, `bubblewrap`, `sandlock` and `seatbelt` are the ways of a system to hold a command in, `proof`
takes the first of them that holds a command of ours that tries to get out. Called by `exec` and by who puts the service
together. docs/security.md says what is promised.
"""
