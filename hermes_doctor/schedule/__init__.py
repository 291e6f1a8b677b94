"""Installs jobs in systemd, launchd or cron, among them the daily backup.

`watch` and `cli` use it.
"""
