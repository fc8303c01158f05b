"""Who people are, and where they may speak with the bot: owners, guests, groups, accounts and conversations."""
