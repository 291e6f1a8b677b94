"""Write hermes_doctor/knowledge/services.json: which service definition each release writes.

    python -m tools.learn_services            all releases, some seconds
    python -m tools.learn_services 0.19.0     prints the answers of one release

For each release: the settings of its systemd unit and of its launchd job, without those that depend
on the machine, and how long it lets work in progress finish before a restart.
"""

from __future__ import annotations

import json
import plistlib
import tempfile
from pathlib import Path
from typing import Any

from hermes_doctor.supervisors import unit_file
from tools import lessons, real_home

TARGET = Path(__file__).parent.parent / "hermes_doctor" / "knowledge" / "services.json"
LESSON = """
import json
from gateway.restart import DEFAULT_GATEWAY_RESTART_DRAIN_TIMEOUT as drain
from hermes_cli import gateway
print(json.dumps([gateway.generate_systemd_unit(), gateway.generate_launchd_plist(), drain]))
"""
PLACES = ("Environment", "WorkingDirectory", "ExecStopPost", "Description", "WantedBy")
"""Settings that contain paths or have no effect."""
KEYS = ("KeepAlive", "RunAtLoad", "ThrottleInterval", "ExitTimeOut")


def ask(version: str) -> dict[str, Any]:
    """Return what one release would write."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / ".hermes"
        home.mkdir()
        unit, plist, drain = json.loads(real_home.run(version, home, LESSON))
    found: unit_file.Settings = {}
    unit_file.parse(unit, found)
    settings = {name: values[-1] for name, values in found.items() if name not in PLACES}
    settings["ExecStart"] = settings["ExecStart"].partition(" ")[2]
    settings["ExecStopPost"] = found.get("ExecStopPost", [""])[-1].partition(" ")[2]
    job = plistlib.loads(plist.encode())
    return {
        "unit": dict(sorted((name, value) for name, value in settings.items() if value)),
        "job": {name: job[name] for name in KEYS if name in job},
        "drain": drain,
    }


if __name__ == "__main__":
    lessons.learn(ask, lambda said: json.dumps(said, indent=1) + "\n", TARGET)
