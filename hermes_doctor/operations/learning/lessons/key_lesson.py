"""Report from inside a release which keys of config.yaml it knows.

Runs under the release's own interpreter and imports nothing from this project. Its input says
whether to look for overrides, which takes a while. It prints one document:

    keys      the keys at the top and one level below, as `section.key`; `model.key`, `provider.key`
              and `platform.key` are those of a model, of an entry of `providers`, of a platform
    read      every quoted word anywhere in its code: keys that it may read without listing them
    bridged   keys that set a variable unless it is set already, so that one in .env overrides them
    numbers   variables that must be a number, or else loading the gateway's settings fails
    older     deprecated keys and variables, with their newer place
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

MARK = "mark7392"
_QUOTED = re.compile(r"""["']([a-z][a-z0-9_]{2,40})["']""")
_MODEL = re.compile(r"""model_(?:cfg|config)(?:\.get\(|\[)["'](\w+)["']""")
_BLOCK = re.compile(r"""["'](\w+)["'] in \w+_cfg\b|_cfg(?:\.get\(|\[)["'](\w+)["']""")
_EXTRA = re.compile(r"""extra\.get\(["'](\w+)["']()""")
_PORT = re.compile(r"""["']([A-Z][A-Z0-9_]+_PORT)["']""")


def main() -> None:
    logging.disable(logging.CRITICAL)
    home = Path(os.environ["HERMES_HOME"])
    (home / "config.yaml").write_text("{}\n")
    from gateway import config as gateway  # type: ignore[import-not-found]
    from hermes_cli import config, doctor  # type: ignore[import-not-found]

    gateway.load_gateway_config()  # finds the plugins
    sources = list(_sources(Path(config.__file__).parent.parent))
    asker = Asker(gateway, home)
    bridges = json.load(sys.stdin)
    found = {
        f"{section}.{key}": instead
        for section, key, instead in getattr(doctor, "_DEPRECATED_CONFIG_KEYS", ())
    }
    for key in getattr(doctor, "_DEPRECATED_COMPRESSION_SUMMARY_KEYS", ()):
        found[f"compression.{key}"] = "auxiliary.compression"
    print(
        json.dumps(
            {
                "keys": sorted({*_keys(config, gateway, sources)}),
                "read": sorted({word for text in sources for word in _QUOTED.findall(text)}),
                **({"bridged": asker.bridged()} if bridges else {}),
                "numbers": asker.numbers(sources),
                "older": (found | dict(getattr(doctor, "_DEPRECATED_ENV_VARS", ()))),
            }
        )
    )


def _sources(root: Path) -> Iterator[str]:
    names = distribution("hermes-agent").read_text("top_level.txt") or ""
    for name in names.split():
        paths = sorted((root / name).rglob("*.py")) or [root / f"{name}.py"]
        for path in paths:
            yield path.read_text(encoding="utf-8", errors="replace")


def _keys(config: Any, gateway: Any, sources: list[str]) -> Iterator[str]:
    yield from config._KNOWN_ROOT_KEYS
    for name, value in config.DEFAULT_CONFIG.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{key}" for key in value)
    for text in sources:
        yield from (f"model.{key}" for key in _MODEL.findall(text))
    for constant in config._normalize_custom_provider_entry.__code__.co_consts:
        # From Python 3.12 on, these include constants of comprehensions. Only this set has names.
        if isinstance(constant, frozenset) and "base_url" in constant:
            yield from (f"provider.{word}" for word in constant)
    for field in fields(gateway.PlatformConfig):
        yield f"platform.{field.name}"
    for word in _platform_words(gateway, _BLOCK) | _platform_words(gateway, _EXTRA):
        yield f"platform.{word}"


def _platform_words(gateway: Any, form: re.Pattern[str]) -> set[str]:
    """Return the keys that any platform reads from its block."""
    config = Path(gateway.__file__)
    plugins = (config.parent.parent / "plugins" / "platforms").glob("*/*.py")
    adapters = (config.parent / "platforms").rglob("*.py")
    texts = (path.read_text(encoding="utf-8") for path in (config, *plugins, *adapters))
    return {word for text in texts for found in form.findall(text) for word in found if word}


class Asker:
    """Set a marker in one place at a time and see where it appears."""

    def __init__(self, gateway: Any, home: Path) -> None:
        self.gateway = gateway
        self.home = home
        self.before = dict(os.environ)

    def bridged(self) -> dict[str, str]:
        """Map each platform key, top-level or in `platforms`, to the variable that overrides it."""
        found = {}
        words = _platform_words(self.gateway, _BLOCK)
        alone = {field.name for field in fields(self.gateway.PlatformConfig)} & words
        rest = sorted(words - alone)  # one of the former may decide about all others
        for name in self._platforms():
            for place in ("", "platforms."):
                for key in sorted({*alone, *self._likely(f"{place}{name}", rest)}):
                    text = _nested(f"{place}{name}.{key}", MARK)
                    for variable in self._set_by(text):
                        if not self._set_by(text, {variable: "kept"}):
                            found[f"{place}{name}.{key}"] = variable
        return found

    def _likely(self, block: str, words: list[str]) -> list[str]:
        """Return the keys to try alone: those that set a variable when all are there at once.

        A value that the release rejects hides the others, so then the keys are halved.
        """
        marks = {f"{MARK}x{n}x": word for n, word in enumerate(words)}
        inner = ", ".join(f"{word}: {mark}" for mark, word in marks.items())
        try:
            text = _nested(block, f"{{{inner}}}")
            (self.home / "config.yaml").write_text(text)
            try:
                self.gateway.load_gateway_config()
                seen = "\n".join(v for n, v in os.environ.items() if n not in self.before)
            finally:
                os.environ.clear()
                os.environ.update(self.before)
        except Exception:  # noqa: BLE001 (the release rejects a value)
            half = len(words) // 2
            if not half:
                return []
            return self._likely(block, words[:half]) + self._likely(block, words[half:])
        return [word for mark, word in marks.items() if mark in seen]

    def _platforms(self) -> list[str]:
        from gateway.platform_registry import platform_registry  # type: ignore[import-not-found]

        names = {one.value for one in self.gateway.Platform} - {"local"}
        return sorted(names | {entry.name for entry in platform_registry.all_entries()})

    def _set_by(self, text: str, variables: dict[str, str] | None = None) -> list[str]:
        (self.home / "config.yaml").write_text(text)
        os.environ.update(variables or {})
        try:
            self.gateway.load_gateway_config()
            return sorted(n for n, v in os.environ.items() if MARK in v and n not in self.before)
        except Exception:  # noqa: BLE001 (the release rejects the value)
            return []
        finally:
            os.environ.clear()
            os.environ.update(self.before)

    def numbers(self, sources: list[str]) -> list[str]:
        """Return the variables that make loading the settings fail if they are not numbers."""
        (self.home / "config.yaml").write_text("{}\n")
        found = []
        for name in sorted({word for text in sources for word in _PORT.findall(text)}):
            begin = name.removesuffix("_PORT").removesuffix("_WEBHOOK")
            others = {
                f"{begin}_{word}": "plain1234"
                for word in ("CORP_ID", "CORP_SECRET", "SERVER_URL", "PASSWORD", "TOKEN", "ENABLED")
            }
            os.environ.update(others)
            try:
                self.gateway.load_gateway_config()
                os.environ[name] = "abc"
                self.gateway.load_gateway_config()
            except ValueError:
                found.append(name)
            finally:
                os.environ.clear()
                os.environ.update(self.before)
        return found


def _nested(path: str, value: str) -> str:
    text = value
    for key in reversed(path.split(".")):
        text = f"{{{key}: {text}}}"
    return text + "\n"


if __name__ == "__main__":
    main()
