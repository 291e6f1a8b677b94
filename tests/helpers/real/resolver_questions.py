"""The same questions to our resolver and to a real release."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes import setting_inputs
from hermes_doctor.hermes.knowledge import parse_release as numbers
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings import env_file, platforms, request_route, resolved
from hermes_doctor.hermes.settings.document import (
    Document,
    RequestSettings,
    ResolvedValue,
    Unresolved,
)
from hermes_doctor.hermes.settings.inputs import SettingInputs
from tests.helpers.real.home_words import TASKS
from tests.helpers.real.made_homes import Made
from tools import lessons, real_home, releases

LESSON = Path(lessons.__file__).with_name("resolver_lesson.py")
Fields = dict[str, Any]
MISSING = "—"


def world(home: Path, made: Made, version: str) -> SettingInputs:
    """What our resolver sees of a home that is written."""
    release = Release(numbers(version))
    config = home / "config.yaml"
    env = env_file.read(Home(home))
    return SettingInputs(
        release=release,
        document=Document(config.read_bytes() if config.exists() else b""),
        readings=env_file.parse_env(env, release, made.environment)
        if env
        else env_file.NO_VARIABLES,
        started_with=made.environment,
        store=setting_inputs.store(home / "auth.json"),
        now=time.time(),
    )


def ours(seen: SettingInputs) -> Fields:
    """Our answers."""
    found = resolved.resolve_settings(seen)
    main = _runtime(lambda: request_route.resolve(seen, request_route.requested_provider(seen)[0]))
    used, model = main, None
    if found.used is None:
        used = {"trouble": found.main.trouble and found.main.trouble.kind}
    else:
        model = found.used.model.value
        if found.used.path != "model":
            path = found.used.path
            link = next(one for one in resolved._tried_fallbacks(seen) if one.path == path)
            used = _runtime(lambda: link.resolve(seen))
    return {
        "main": main,
        "used": used,
        "model": model,
        "fallback": [
            {"model": str(link.model), **_runtime(lambda link=link: link.resolve(seen))}  # type: ignore[misc]
            for link in resolved.fallback_chain(seen)
        ],
        "tasks": {t.name: _task(t) for t in resolved.task_settings(seen) if t.name in TASKS},
        "platforms": {one.name: _platform(seen, one) for one in found.platforms},
    }


def _runtime(ask: Callable[[], RequestSettings]) -> Fields:
    try:
        found = ask()
    except Unresolved as error:
        return {"trouble": error.kind}
    return {
        "provider": found.provider,
        "base_url": str(found.base_url),
        "api_mode": str(found.api_mode),
        "key": hashed(found.key),
    }


def _task(task: resolved.TaskSettings) -> list[str | None]:
    plain = (task.provider, task.model, task.base_url, hashed(task.key), task.api_mode)
    return [str(one) if one else None for one in plain]


def _platform(seen: SettingInputs, one: platforms.Access) -> Fields:
    def value(answer: ResolvedValue | None) -> str | None:
        return answer.value if answer else None

    return {
        "token": hashed(platforms.access_reader(seen, one.name).token_text()),
        "home_channel": value(one.home_channel),
        "dm_policy": value(one.dm_policy),
        "group_policy": value(one.group_policy),
        "allow_from": value(one.allow_from),
        "u-1": one.admits("u-1"),
        "stranger": one.admits("stranger"),
    }


def hashed(value: str) -> str | None:
    return hashlib.sha256(str(value).encode()).hexdigest()[:12] if value else None


def theirs(version: str, folder: Path, homes: list[tuple[Path, Made]]) -> list[Fields]:
    """What Hermes itself answers, for each home."""
    scratch = folder / "scratch"
    scratch.mkdir()
    sealed = {"HERMES_MANAGED_DIR": str(folder / "nothing")}
    asked = [
        json.dumps({"home": str(home), "environment": made.environment, "tasks": TASKS})
        for home, made in homes
    ]
    done = subprocess.run(
        [str(releases.python_of(version)), "-I", str(LESSON)],
        env=real_home.environment(scratch) | sealed,
        cwd=scratch,
        input="\n".join(asked) + "\n",
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def compare(mine: Fields, real: Fields) -> tuple[int, dict[str, tuple[Any, Any]]]:
    """How many fields there are, and those that differ: ours and theirs."""
    mine["tasks"] = {name: mine["tasks"].get(name) or [None] * 5 for name in real.get("tasks", {})}
    mine["tasks"] = {n: t if t[0] else ["auto", *t[1:]] for n, t in mine["tasks"].items()}
    ours_flat, real_flat = dict(_flat(mine)), dict(_flat(real))
    names = ours_flat.keys() | real_flat.keys()
    differing = {
        name: (ours_flat.get(name, MISSING), real_flat.get(name, MISSING))
        for name in sorted(names)
        if ours_flat.get(name, MISSING) != real_flat.get(name, MISSING)
    }
    return len(names), differing


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _flat(one, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _flat(one, f"{path}[{number}]")
    else:
        yield path, value
