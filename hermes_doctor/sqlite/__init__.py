"""Examine, copy and repair SQLite databases, also damaged ones and ones in use.

This package does not import probes or plans: `planning` decides what is repaired, and `backup`
decides what is copied.
"""
