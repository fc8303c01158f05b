"""Entry of the `hark` command and of `python -m bot`; imports the command line and nothing else."""

from bot.cli.app import main

if __name__ == "__main__":
    main()
