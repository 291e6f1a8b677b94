"""Installs jobs in systemd, launchd or cron, among them the daily backup.

`planning`, `steps`, `watch` and `cli` use it.
"""
