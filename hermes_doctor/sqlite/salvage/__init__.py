"""Save all readable rows of a damaged database into a new one with its release's schema.

It is the last method in `sqlite.repairs`. It parses the pages itself, so it also works for files
that SQLite cannot open.
"""
