"""The properties of a systemd unit whose gateway ended, by how it ended."""

STOPPED = {
    "ActiveState": "failed",
    "Result": "exit-code",
    "Restart": "always",
    "ExecMainStatus": "1",
    "InactiveExitTimestampMonotonic": "640000000",
    "ActiveExitTimestampMonotonic": "646250022",
    "ExecMainExitTimestampMonotonic": "646250166",
    "InactiveEnterTimestampMonotonic": "646251785",
    "StateChangeTimestampMonotonic": "646251785",
}
"""What systemd 252 says after `systemctl stop` of a gateway, which ends with status 1."""
CRASHED = {"ActiveExitTimestampMonotonic": "646250417"}
"""After a crash its process ends first."""
WAITED = {
    "ActiveState": "inactive",
    "ActiveExitTimestampMonotonic": "646250417",
    "InactiveExitTimestampMonotonic": "646260000",
    "InactiveEnterTimestampMonotonic": "650000000",
    "StateChangeTimestampMonotonic": "650000000",
}
"""It was stopped while it waited for its restart after a crash."""
NEVER = {name: "0" for name in STOPPED if name.endswith("Monotonic")} | {
    "ActiveState": "inactive",
    "Result": "success",
}
"""It has not run since the machine was started."""
