"""Commands: `registry` finds and checks them; the features make their own and carry them out."""
