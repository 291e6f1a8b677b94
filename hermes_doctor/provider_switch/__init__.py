"""From one model provider to another in one run, proved by a request or rolled back.

It plans edits with `planning` and carries them out with `repair`.
"""
