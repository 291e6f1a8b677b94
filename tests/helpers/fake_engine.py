"""A fake container engine that keeps its containers and images in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.helpers import support

PROGRAM = f"""#!{sys.executable} -IS
import json, sys
file, words = FILE, sys.argv[1:]
with open(file) as f:
    held = json.load(f)
held["asked"].append(words)
code = 0
if words[0] == "ps":
    print(*(one["Id"] for one in held["containers"]), sep="\\n")
elif "{{json .Mounts}}" in " ".join(words):
    for one in held["containers"]:
        parts = one["Id"], one["Mounts"], one["Config"]["Env"], one["Config"].get("Labels")
        print(*map(json.dumps, parts), sep="\\t")
elif words[0] == "inspect":
    found = [c for c in held["containers"] if words[-1] in (c["Id"], c["Name"].lstrip("/"))]
    print(json.dumps(found))
    code = int(not found)
elif words[0] == "update":
    for one in held["containers"]:
        one["HostConfig"] = dict(RestartPolicy=dict(Name=words[2]))
elif words[0] == "tag":
    held["names"][words[2]] = words[1]
elif words[0] == "image":
    found = [dict(Id="sha256:" + held["names"][n]) for n in words[2:] if n in held["names"]]
    print(json.dumps(found))
    code = int(not found)
elif words[0] == "compose":
    for one in held["containers"]:
        one["Image"] = held["next"]
else:
    code = 64
with open(file, "w") as f:
    json.dump(held, f)
sys.exit(code)
"""
OLD, NEW = "a1" * 32, "b2" * 32


class Engine:
    """An engine with containers that mount a home, by default the folder `home`."""

    def __init__(
        self, folder: Path, count: int = 1, mounts: Sequence[dict[str, object]] = ()
    ) -> None:
        self.bin = folder / "bin"
        self.file = folder / "held.json"
        containers = [
            {
                "Id": f"c0ffee{number}",
                "Name": f"/chat-gateway-{number}",
                "Image": f"sha256:{OLD}",
                "Config": {"Image": "hermes:latest", "Env": []},
                "Mounts": mounts or [{"Source": str(folder / "home"), "Destination": "/opt/data"}],
                "State": {"Status": "running"},
            }
            for number in range(count)
        ]
        held = {"containers": containers, "next": f"sha256:{NEW}", "asked": [], "names": {}}
        support.put(self.file, json.dumps(held))
        program = PROGRAM.replace("FILE", repr(str(self.file)))
        support.put(self.bin / "docker", program, 0o755)

    @property
    def held(self) -> dict[str, Any]:
        """Its current containers and images."""
        found: dict[str, Any] = json.loads(self.file.read_text())
        return found
