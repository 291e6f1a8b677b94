"""Runs the checks of a home and makes one report: findings, causes, liveness, timeline.

It runs what `plugins` loaded; `render` shows the report.
"""
