"""Switches to another model provider in one run, proved by a request or rolled back.

It plans edits with `planning` and applies them with `repair`.
"""
