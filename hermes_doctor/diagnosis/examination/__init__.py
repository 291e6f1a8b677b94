"""Run the checks on a home and make one report: findings, causes, liveness, timeline.

The checks come from `plugins`; `render` shows the report. `container_probe` answers the health
checks of containers without a report.
"""
