"""Report from inside a release which settings make its gateway start which platform.

Runs under the release's own interpreter and imports nothing from this project. It reads the
platforms and the variables that each may use from its input, and prints for each platform:

    by        the smallest sets of variables that enable it
    on, off   where `enabled: true` enables it, and `enabled: false` disables it despite variables
    notifies  whether an adapter that fails at run time notifies the gateway, which then tries again
"""

from __future__ import annotations

import inspect
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

FORMS = {"top": "", "platforms": "platforms.", "gateway": "gateway.platforms."}
"""The places in config.yaml where a platform can be enabled, by the prefix of its name."""
EMPTY = "{}\n"


def main() -> None:
    from gateway import config  # type: ignore[import-not-found]

    wanted: dict[str, list[str]] = json.load(sys.stdin)
    home = Path(os.environ["HERMES_HOME"])
    (home / "config.yaml").write_text(EMPTY)
    config.load_gateway_config()  # finds the plugins
    print(
        json.dumps(
            {
                name: _platform(config, home, name, variables)
                for name, variables in wanted.items()
                if _is_known(config, name)
            }
        )
    )


def _platform(config: Any, home: Path, name: str, variables: list[str]) -> dict[str, Any]:
    if not _starts(config, home, name, tuple(variables)):
        # Pretend that the platform's library is installed, because only settings matter here.
        entry = _entries().get(name)
        if entry is not None:
            entry.check_fn = lambda: True
    by: list[list[str]] = []
    for count in range(1, len(variables) + 1):
        for some in itertools.combinations(variables, count):
            if not any(set(fewer) <= set(some) for fewer in by) and _starts(
                config, home, name, some
            ):
                by.append(list(some))
    switched = {
        word: [
            form
            for form, above in FORMS.items()
            if _starts(config, home, name, names, _nested(above + name, word == "on"))
            is (word == "on")
        ]
        for word, names in (("on", ()), ("off", tuple(variables)))
    }
    return {"by": by, **switched, "notifies": _notifies(name)}


def _starts(
    config: Any, home: Path, name: str, variables: tuple[str, ...], text: str = EMPTY
) -> bool:
    """Return whether the gateway would start this platform with these settings."""
    (home / "config.yaml").write_text(text)
    os.environ.update({variable: _value(variable) for variable in variables})
    try:
        platforms = config.load_gateway_config().platforms
    finally:
        for variable in variables:
            os.environ.pop(variable, None)
    return any(one.value == name and settings.enabled for one, settings in platforms.items())


def _value(variable: str) -> str:
    """Return a plausible value for this variable."""
    if variable.endswith("_ENABLED"):
        return "true"
    if variable.endswith(("_URL", "_HOMESERVER")):
        return "http://127.0.0.1:9/x"
    if variable.endswith("_JSON"):
        return "/nowhere.json"
    return "1234567890:" + "abcDEF0123456789" * 2


def _nested(path: str, on: bool) -> str:
    text = f"enabled: {str(on).lower()}"
    for key in reversed(path.split(".")):
        text = f"{{{key}: {{{text}}}}}" if not text.startswith("{") else f"{{{key}: {text}}}"
    return text + "\n"


def _is_known(config: Any, name: str) -> bool:
    try:
        return bool(config.Platform(name))
    except ValueError:
        return False


def _entries() -> dict[str, Any]:
    try:
        from gateway.platform_registry import (  # type: ignore[import-not-found]
            platform_registry,
        )
    except ImportError:
        return {}
    return {entry.name: entry for entry in platform_registry.plugin_entries()}


def _notifies(name: str) -> bool | None:
    """Return whether the adapter's own code reports failures at run time; None if unknown."""
    source = _source(name)
    return None if source is None else "._notify_fatal_error(" in source


def _source(name: str) -> str | None:
    entry = _entries().get(name)
    if entry is not None:
        made = inspect.getsourcefile(inspect.unwrap(entry.adapter_factory))
        return _texts(Path(made).parent) if made and Path(made).name != "run.py" else None
    import gateway.platforms  # type: ignore[import-not-found]

    folder = Path(gateway.platforms.__file__).parent
    if (folder / name).is_dir():
        return _texts(folder / name)
    single = folder / f"{name}.py"
    return single.read_text() if single.exists() else None


def _texts(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.py")))


if __name__ == "__main__":
    main()
