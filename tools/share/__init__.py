"""Makes the man page and the completions of shells from the commands, for `tools/build_hook.py`."""
