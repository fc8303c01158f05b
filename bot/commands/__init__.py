"""Commands: `registry` finds and checks them, `builtin` lists them, `answers` carries them out."""
