"""SQLite files as bytes: examined, copied while in use, salvaged, repaired on a private copy.

It knows no probe and no plan. `planning` decides what is repaired, `backup` what is copied.
"""
