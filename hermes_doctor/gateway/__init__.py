"""Stops and starts the gateway of a home through whatever owns it.

`supervisors` finds the owner; `repair` stops and starts the gateway around a run.
"""
