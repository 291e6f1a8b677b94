"""Saves every row that can still be read into a new database with its release's schema.

It is the last repair in `sqlite.repairs`, and works without SQLite where SQLite gives up.
"""
