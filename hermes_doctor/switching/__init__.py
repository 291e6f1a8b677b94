"""From one model provider to another, in one run.

`aims` finds out what is switched to, `planning` makes the edits and works out what Hermes will then
resolve, and `proof` holds the result against it and sends one request. Nothing of it writes: the
steps go through the same transaction as every repair.
"""
