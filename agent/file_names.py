"""The names of the files of a workspace whose words come into prompts."""

AGENTS = "AGENTS.md"
CLAUDE = "CLAUDE.md"  # stands in for AGENTS.md where that is missing or says nothing
HEARTBEAT = "HEARTBEAT.md"  # read for each beat, and not part of the prompt
BOOTSTRAP = "BOOTSTRAP.md"  # the script of the first meeting, which only a person makes

# In the order of the prompt.
ORDER = (AGENTS, "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md", "MEMORY.md")
# All files that are made when they are missing.
NAMES = (*ORDER, HEARTBEAT)
# All files whose words can come into a prompt, which commands may not change: also those that a person alone makes.
KEPT = (*NAMES, CLAUDE, BOOTSTRAP)
# Files that every prompt has from the workspace, and files that each room has of its own.
SHARED = (AGENTS, "SOUL.md", "IDENTITY.md")
OWN = ("USER.md", "MEMORY.md")
