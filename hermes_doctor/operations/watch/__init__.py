"""Examines a home at intervals, reports changes, notifies, and repairs where asked to.

It runs `examination` and `repair`; `schedule` keeps it running.
"""
