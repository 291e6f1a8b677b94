"""Examines a home again and again, reports changes, notifies, and heals where asked to.

It runs `examination` and `repair`; `schedule` keeps it running.
"""
