"""Checks, fixes and log rules: how they are declared, found and loaded.

`examination` runs the checks and `repair` the fixes.
"""
