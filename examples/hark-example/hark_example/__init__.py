"""An extension of Hark: the channel mailbox and the tool dice."""
