"""Programs of the command line as models: Claude Code, Codex CLI and Gemini CLI, with their own tools turned off.

`programs` says how each is started, `readers` what it prints, `proof` looks at the tools that one offers to its model,
`conversation` writes requests as text, and `client` starts the program for each call, in the sandbox.
"""
