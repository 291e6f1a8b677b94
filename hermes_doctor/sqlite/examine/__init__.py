"""Examine one database, in stages from the cheapest to the most expensive.

`run.examine` is the only entrance; it returns a `condition.Condition`. `soundness` is for copies:
it lets SQLite check a file that no other process uses.
"""
