"""Who would start a gateway again: systemd, launchd, s6, Docker or Windows.

It only reads; `gateway` is what stops and starts.
"""
