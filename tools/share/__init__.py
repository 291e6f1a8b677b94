"""Writes the man page and the completions of shells in share/ from the commands: `make share`."""
