"""Report from inside a release which service definitions it writes.

Prints its systemd unit, its launchd job, and the seconds that it gives to work in progress before a
restart.
"""

import json
import logging
import sys
from importlib import import_module


def main() -> None:
    logging.disable(logging.CRITICAL)
    drain = import_module("gateway.restart").DEFAULT_GATEWAY_RESTART_DRAIN_TIMEOUT
    gateway = import_module("hermes_cli.gateway")
    said = [gateway.generate_systemd_unit(), gateway.generate_launchd_plist(), drain]
    sys.stdout.write("\n" + json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
