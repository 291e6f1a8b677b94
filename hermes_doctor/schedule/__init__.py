"""A job handed to systemd, launchd or cron; the daily backup.

`watch` and `cli` install jobs with it.
"""
