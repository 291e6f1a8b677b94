"""Find the supervisor that restarts a gateway: systemd, launchd, s6, Docker or Windows.

It only reads; the package `gateway` stops and starts gateways.
"""
