"""Report from inside a release where scheduled jobs can deliver their results.

Prints, for each platform that a job may deliver to, the variables that name its home channel, the
preferred one first; none if a job has to name the chat.
"""

import json
import logging
import sys
from importlib import import_module


def main() -> None:
    logging.disable(logging.CRITICAL)
    cron = import_module("cron.scheduler")
    older = getattr(cron, "_LEGACY_HOME_TARGET_ENV_VARS", {})
    found: dict[str, list[str]] = {name: [] for name in cron._KNOWN_DELIVERY_PLATFORMS}
    for name in cron._iter_home_target_platforms():
        variable = cron._resolve_home_env_var(name)
        found[name] = [one for one in (variable, older.get(variable)) if one]
    words = getattr(cron, "_ROUTING_TOKENS", ())
    sys.stdout.write("\n" + json.dumps({"platforms": found, "words": sorted(words)}) + "\n")


if __name__ == "__main__":
    main()
