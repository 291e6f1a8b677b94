"""A stand-in for a container engine: it keeps images, names of images and containers in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests import support

PROGRAM = f"""#!{sys.executable} -IS
import json, sys
file, words = FILE, sys.argv[1:]
with open(file) as f:
    held = json.load(f)
held["asked"].append(words)

def keep(code=0):
    with open(file, "w") as f:
        json.dump(held, f)
    sys.exit(code)

def container(name):
    for one in held["containers"]:
        if name in (one["Id"], one["Name"].lstrip("/")):
            return one
    print("no such container", file=sys.stderr)
    keep(1)

def made(one):
    one["Image"] = held["tags"][one["Config"]["Image"]]
    one["Id"] = one["Id"][:-1] + chr(ord(one["Id"][-1]) + 1)

if words[0] == "ps":
    print(*(one["Id"] for one in held["containers"]), sep="\\n")
elif words[:2] == ["image", "inspect"]:
    found = held["tags"].get(words[-1]) or "sha256:" + words[-1]
    if found not in held["images"]:
        keep(1)
    print(found)
elif words[0] == "inspect":
    print(json.dumps([container(words[-1])]))
elif words[0] == "tag":
    held["tags"][words[2]] = "sha256:" + words[1]
elif words[0] == "pull":
    held["tags"][words[1]] = held["images"][-1]
elif words == ["compose", "version"]:
    keep(not held["composes"])
elif words[0] == "compose" and "up" in words:
    if "always" in words:
        held["tags"]["hermes:latest"] = held["images"][-1]
    for one in held["containers"]:
        made(one)
elif words[0] == "rmi":
    held["images"].remove("sha256:" + words[1])
elif words[0] == "set":
    held["containers"][0]["Config"]["Image"] = words[1]
    held["tags"][words[1]] = held["images"][-1]
    made(held["containers"][0])
else:
    print("unknown", words, file=sys.stderr)
    keep(64)
keep()
"""
OLD, NEW = "a1" * 32, "b2" * 32


class Engine:
    """One with a container that a home is a volume of."""

    def __init__(self, folder: Path, *, compose: bool = True, composes: bool = True) -> None:
        self.bin = folder / "bin"
        self.file = folder / "held.json"
        prefix = "com.docker.compose."
        labels = {
            f"{prefix}project": "chat",
            f"{prefix}service": "gateway",
            f"{prefix}project.working_dir": "/srv/chat",
            f"{prefix}project.config_files": "/srv/chat/compose.yaml,/srv/chat/more.yaml",
        }
        one = {
            "Id": "c0ffee0",
            "Name": "/chat-gateway-1",
            "Image": f"sha256:{OLD}",
            "Config": {"Image": "hermes:latest", "Labels": labels if compose else {}},
            "State": {"Status": "running"},
        }
        held = {
            "images": [f"sha256:{OLD}", f"sha256:{NEW}"],
            "tags": {"hermes:latest": f"sha256:{OLD}"},
            "containers": [one],
            "composes": composes,
            "asked": [],
        }
        support.put(self.file, json.dumps(held))
        program = PROGRAM.replace("FILE", repr(str(self.file)))
        support.put(self.bin / "docker", program, 0o755)

    @property
    def held(self) -> dict[str, Any]:
        """What it has by now."""
        found: dict[str, Any] = json.loads(self.file.read_text())
        return found

    @property
    def image(self) -> str:
        """What its container is made from."""
        return str(self.held["containers"][0]["Image"]).removeprefix("sha256:")
