"""Backups and their vault: select, save, share, verify, restore and prune files of a home.

`repair` makes a backup before it changes anything; `schedule` and `cli` make backups directly.
"""
