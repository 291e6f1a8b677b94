"""Report from inside a release where its platforms take their settings from.

Runs under the release's own interpreter and imports nothing from this project. It reads the
platforms and the variables that enable each from its input, and prints for each platform:

    variables  for each setting of the platform, the variable that it is taken from
    bound      the settings whose variable is used only with those that enable the platform
    users      the variable that lists who may talk to it
    everyone   the variable that lets everyone talk to it
    loose      whether any setting in its block of config.yaml starts it
    file       whether variables are used that are in .env but not in the environment
    strict     whether it is not started with a placeholder for a token
    keys       the keys of config.yaml that are used, by their place
    bridged    keys that become a variable where it is not set, with its name
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARK = "mark7392"
PLACES = {"top": "", "platforms": "platforms.", "gateway": "gateway.platforms."}
KEYS = (
    "token",
    "api_key",
    "allow_from",
    "allowed_users",
    "group_allow_from",
    "group_allowed_users",
    "dm_policy",
    "group_policy",
)
_NAME = re.compile(r"""["']([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)["']""")


def main() -> None:
    logging.disable(logging.CRITICAL)
    wanted: dict[str, list[str]] = json.load(sys.stdin)
    home = Path(os.environ["HERMES_HOME"])
    (home / "config.yaml").write_text("{}\n")
    from gateway import config, run  # type: ignore[import-not-found]

    config.load_gateway_config()  # finds the plugins
    asker = Asker(config, run, home)
    print(
        json.dumps(
            {
                name: asker.platform(name, variables)
                for name, variables in wanted.items()
                if asker.knows(name)
            }
        )
    )


class Asker:
    """Set a marker in one place at a time and see where it appears."""

    def __init__(self, config: Any, run: Any, home: Path) -> None:
        self.config = config
        self.run = run
        self.home = home
        self.before = dict(os.environ)
        self.names = sorted({name for text in self._sources() for name in _NAME.findall(text)})

    def knows(self, name: str) -> bool:
        try:
            return bool(self.config.Platform(name))
        except ValueError:
            return False

    def _sources(self) -> Iterator[str]:
        here = Path(self.config.__file__).parent
        yield (here / "config.py").read_text(encoding="utf-8")
        for path in (here / "run.py", here / "authz_mixin.py"):
            if path.exists():
                yield path.read_text(encoding="utf-8")
        for path in sorted((here.parent / "plugins" / "platforms").glob("*/*.py")):
            yield path.read_text(encoding="utf-8")

    def platform(self, name: str, variables: list[str]) -> dict[str, Any]:
        begins = {v.partition("_")[0] + "_" for v in variables} | {name.upper() + "_"}
        begins = {"GATEWAY_RELAY_" if begin == "GATEWAY_" else begin for begin in begins}
        found = [n for n in self.names if n.startswith(tuple(begins))]
        others = sorted({*found, *variables} - {n for n in found if n.endswith("_ENABLED")})
        base = {variable: _value(variable) for variable in variables}
        taken: dict[str, str] = {}
        for variable in others:
            for field in self._fields(name, {**base, variable: _value(variable, MARK)}, "{}\n"):
                taken.setdefault(field, variable)
        on = _nested(f"platforms.{name}.enabled", "true")
        bound = [
            field
            for field, variable in taken.items()
            if field not in self._fields(name, {variable: _value(variable, MARK)}, on)
        ]
        lists = [v for v in others if "ALLOW" in v and not self._admits(name, {v: "u-2"})]
        admits = [v for v in lists if self._admits(name, {v: "u-1"})]
        opens = [v for v in lists if v not in admits and self._admits(name, {v: "true"})]
        return {
            "variables": taken,
            "bound": bound,
            "users": admits[0] if admits else None,
            "everyone": opens[0] if opens else None,
            "loose": self._starts(name, {}, _nested(f"platforms.{name}.dm_policy", "x")),
            "file": self._reads_file(name, base),
            "strict": self._is_strict(name, base, taken.get("token")),
            **self._keys(name, base),
        }

    def _is_strict(self, name: str, base: dict[str, str], variable: str | None) -> bool:
        if variable is None or not self._starts(name, base):
            return False
        return not self._starts(name, {**base, variable: "changeme"})

    def _reads_file(self, name: str, base: dict[str, str]) -> bool:
        """Test with an unclosed quote, which only Hermes' own parser reads, not python-dotenv."""
        file = self.home / ".env"
        file.write_text("".join(f'{key}="{value}\n' for key, value in base.items()))
        try:
            return self._starts(name, {})
        finally:
            file.unlink()

    def _starts(self, name: str, variables: dict[str, str], text: str = "{}\n") -> bool:
        (self.home / "config.yaml").write_text(text)
        os.environ.update(variables)
        try:
            loaded = self.config.load_gateway_config().platforms
        finally:
            os.environ.clear()
            os.environ.update(self.before)
        return any(one.value == name and settings.enabled for one, settings in loaded.items())

    def _keys(self, name: str, base: dict[str, str]) -> dict[str, Any]:
        keys: dict[str, list[str]] = {}
        bridged: dict[str, str] = {}
        for place, above in PLACES.items():
            for key in (*KEYS, *(f"extra.{key}" for key in KEYS)):
                text = _nested(f"{above}{name}.{key}", MARK)
                became = self._fields(name, base, text) or self._fields(name, {}, text)
                if {key, f"extra.{key}"} & {*became}:
                    keys.setdefault(place, []).append(key)
                variables = [one[1:] for one in became if one[0] == "$"]
                if variables:
                    bridged[f"{place} {key}"] = variables[0]
        return {"keys": keys, "bridged": bridged}

    def _fields(self, name: str, variables: dict[str, str], text: str) -> list[str]:
        """Return where the marker appears: settings of the platform, and variables as `$NAME`."""
        (self.home / "config.yaml").write_text(text)
        os.environ.update(variables)
        try:
            loaded = self.config.load_gateway_config().platforms
            settings = next((one for p, one in loaded.items() if p.value == name), None)
            set_here = {n for n, v in os.environ.items() if MARK in v and n not in variables} - {
                *self.before
            }
        except Exception:  # noqa: BLE001 (the release rejects the value)
            return []
        finally:
            os.environ.clear()
            os.environ.update(self.before)
        found = [f"${n}" for n in sorted(set_here)]
        if settings is None:
            return found
        plain = {"token": settings.token, "api_key": settings.api_key}
        home = settings.home_channel
        plain["home_channel"] = getattr(home, "chat_id", None)
        plain |= {f"extra.{key}": value for key, value in settings.extra.items()}
        return found + [field for field, value in plain.items() if MARK in str(value)]

    def _admits(self, name: str, variables: dict[str, str]) -> bool:
        """Return whether the gateway would accept a direct message from a user."""
        runner = object.__new__(self.run.GatewayRunner)
        store = types.SimpleNamespace(is_approved=lambda *_: False)
        runner.pairing_store = store
        runner.config = self.config.GatewayConfig()
        runner.adapters = {}
        source = self.run.SessionSource(
            platform=self.config.Platform(name), chat_id="c-1", user_id="u-1", chat_type="dm"
        )
        os.environ.update(variables)
        try:
            return bool(runner._is_user_authorized(source))
        except Exception:  # noqa: BLE001 (the release cannot ask this platform)
            return False
        finally:
            os.environ.clear()
            os.environ.update(self.before)


def _value(variable: str, mark: str = "plain1234") -> str:
    """Return a plausible value for this variable."""
    if variable.endswith("_ENABLED"):
        return "true"
    if variable.endswith(("_URL", "_HOMESERVER")):
        return f"http://127.0.0.1:9/{mark}"
    return f"1234567890:{mark}" if variable.endswith("_TOKEN") else mark


def _nested(path: str, value: str) -> str:
    text = value
    for key in reversed(path.split(".")):
        text = f"{{{key}: {text}}}"
    return text + "\n"


if __name__ == "__main__":
    main()
