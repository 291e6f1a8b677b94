"""Keeps the history of homes: problems, hours, updates, restarts and repairs, in one SQLite file.

The watch writes it, `check --record` adds to it, and `history` and `check` read it.
"""
