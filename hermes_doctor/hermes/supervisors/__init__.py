"""Find the supervisor that restarts a gateway: systemd, launchd, s6 or Docker.

It only reads; the package `gateway` stops and starts gateways.
"""
