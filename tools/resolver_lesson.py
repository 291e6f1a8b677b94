"""Report from inside a release what Hermes itself resolves for many generated homes.

Runs under the release's own interpreter and imports nothing from this project. It reads the homes
from its input, one JSON document per line, and prints one for each. Every home is resolved in a
fork of a process that has everything loaded, without network; secrets are printed as hashes.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import logging
import os
import signal
import socket
import sys
import types
from pathlib import Path
from typing import Any

SECONDS = 20
KNOWN = (
    ("Unknown provider", "unknown"),
    ("No inference provider configured", "none"),
    ("No usable credentials found", "key"),
    ("OAuth", "login"),
    ("requires an API key", "key"),
    ("API key found", "key"),
    ("credentials found", "key"),
    ("AWS credentials", "key"),
    ("is disabled in config", "disabled"),
    ("requires a base URL", "address"),
    ("object has no attribute", "malformed"),
    ("object is not", "malformed"),
)


def main() -> None:
    """Load everything once, then answer for one home after another."""
    seal()
    os.environ["HERMES_HOME"] = str(Path(os.environ["HERMES_HOME"]))
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stderr(io.StringIO()):
        import agent.auxiliary_client  # type: ignore[import-not-found]
        import gateway.run  # type: ignore[import-not-found]
        from gateway.config import load_gateway_config  # type: ignore[import-not-found]

        bridge = find_bridge(gateway.run)
        load_gateway_config()  # finds the plugins
        agent.auxiliary_client._get_auxiliary_task_config("vision")
    before = dict(os.environ)
    for line in sys.stdin:
        print(in_a_fork(json.loads(line), before, bridge), flush=True)


def seal() -> None:
    """Disable the network, name resolution included."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("sealed")

    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]
    socket.getaddrinfo = refuse
    socket.create_connection = refuse


def find_bridge(run: types.ModuleType) -> Any:
    """Return the part of gateway/run.py that copies settings of config.yaml into variables."""
    source = Path(str(run.__file__)).read_text(encoding="utf-8")
    nodes: list[ast.stmt] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If)
        and "env bridge failed" in str(ast.get_source_segment(source, node))
    ]
    assert len(nodes) == 1
    return compile(ast.Module(nodes, []), "bridge", "exec")


def in_a_fork(asked: dict[str, Any], before: dict[str, str], bridge: Any) -> str:
    """Resolve one home in a child process, so that homes do not affect each other."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(SECONDS)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        try:
            answer = ask(asked, before, bridge)
        except BaseException as error:  # noqa: BLE001
            answer = {"crash": f"{type(error).__name__}: {error}"}
        with os.fdopen(writer, "w") as out:
            out.write(json.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as came:
        text = came.read()
    os.waitpid(child, 0)
    return text or json.dumps({"crash": "no answer"})


def ask(asked: dict[str, Any], before: dict[str, str], bridge: Any) -> dict[str, Any]:
    """Resolve everything about one home with Hermes' own functions, in a gateway's start order."""
    import gateway.run as run
    from hermes_cli.env_loader import load_hermes_dotenv  # type: ignore[import-not-found]

    home = Path(asked["home"])
    os.environ.clear()
    os.environ.update(before)
    os.environ["HERMES_HOME"] = str(home)
    os.environ.update(asked["environment"])
    run._hermes_home = home
    run._config_path = home / "config.yaml"
    load_hermes_dotenv(hermes_home=home)
    exec(bridge, run.__dict__)
    if asked.get("api_server"):
        return {"starts": api_server()}
    if "people" in asked:
        return people(run, asked["people"], asked.get("codes", []))
    answer: dict[str, Any] = {"platforms": platforms(run)}
    answer |= main_route(run)
    answer["fallback"] = chain(run)
    answer["tasks"] = {task: side_task(task) for task in asked["tasks"]}
    return answer


def main_route(run: Any) -> dict[str, Any]:
    """Return what the next message would use, and what the first provider alone resolves to."""
    from hermes_cli.runtime_provider import (  # type: ignore[import-not-found]
        resolve_runtime_provider,
    )

    older = "HERMES_INFERENCE_PROVIDER" in str(run._resolve_runtime_agent_kwargs.__code__.co_consts)
    named = {"requested": os.getenv("HERMES_INFERENCE_PROVIDER")} if older else {}
    first = runtime(lambda: resolve_runtime_provider(**named))
    forget()
    runner = types.SimpleNamespace(_session_model_overrides={}, config=None)
    try:
        model, kwargs = run.GatewayRunner._resolve_session_agent_runtime(runner)
    except Exception as error:  # noqa: BLE001
        return {"main": first, "used": {"trouble": kind(error)}, "model": None}
    return {"main": first, "used": shown(kwargs), "model": str(model or "")}


def runtime(ask: Any) -> dict[str, Any]:
    forget()
    try:
        return shown(ask())
    except Exception as error:  # noqa: BLE001
        return {"trouble": kind(error)}


def forget() -> None:
    """Clear the settings cache before each question, because 0.19.0 changes cached settings."""
    from hermes_cli import config  # type: ignore[import-not-found]

    config._LOAD_CONFIG_CACHE.clear()


def shown(found: dict[str, Any]) -> dict[str, Any]:
    key = found.get("api_key")
    return {
        "provider": found.get("provider"),
        "base_url": found.get("base_url"),
        "api_mode": found.get("api_mode"),
        "key": hashed(key) if isinstance(key, str) else "callable" if key else None,
    }


def hashed(value: str) -> str | None:
    return hashlib.sha256(value.encode()).hexdigest()[:12] if value else None


def kind(error: Exception) -> str:
    said = str(error)
    return next((word for text, word in KNOWN if text in said), "login")


def chain(run: Any) -> list[dict[str, Any]]:
    """Return the fallback chain with what each of its entries would use."""
    from hermes_cli.runtime_provider import resolve_runtime_provider

    found = run.GatewayRunner._load_fallback_model() or []
    entries = found if isinstance(found, list) else [found]
    answers = []
    newer = hasattr(run, "get_fallback_chain")
    for entry in entries:
        if not (isinstance(entry, dict) and entry.get("provider") and entry.get("model")):
            continue
        key = str(entry.get("api_key") or "").strip()
        name = str(entry.get("key_env") or entry.get("api_key_env") or "").strip()
        if not key and name and newer:
            key = os.getenv(name, "").strip()
        resolved = runtime(
            lambda entry=entry, key=key: resolve_runtime_provider(
                requested=entry["provider"],
                explicit_base_url=entry.get("base_url"),
                explicit_api_key=key or None,
            )
        )
        answers.append({"model": str(entry["model"]), **resolved})
    return answers


def side_task(task: str) -> list[Any]:
    from agent.auxiliary_client import _resolve_task_provider_model

    provider, model, url, key, mode = _resolve_task_provider_model(task)
    return [provider, model, url, hashed(key or ""), mode]


def platforms(run: Any) -> dict[str, Any]:
    """Return the platforms that would start, and who may talk to them."""
    from gateway.config import load_gateway_config

    config = load_gateway_config()
    found = {}
    for platform, settings in config.platforms.items():
        if settings.enabled:
            extra = settings.extra
            found[platform.value] = {
                "token": hashed(settings.token or ""),
                "home_channel": getattr(settings.home_channel, "chat_id", None),
                "dm_policy": listed(extra.get("dm_policy")),
                "group_policy": listed(extra.get("group_policy")),
                "allow_from": listed(extra.get("allow_from")),
                "u-1": admits(run, config, platform, "u-1"),
                "stranger": admits(run, config, platform, "stranger"),
            }
    return found


def listed(value: Any) -> str | None:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value) if value else None


def admits(run: Any, config: Any, platform: Any, user: str) -> bool:
    runner = object.__new__(run.GatewayRunner)
    runner.pairing_store = types.SimpleNamespace(is_approved=lambda *_: False)
    runner.config = config
    runner.adapters = {}
    source = run.SessionSource(platform=platform, chat_id="c-1", user_id=user, chat_type="dm")
    return bool(runner._is_user_authorized(source))


def api_server() -> bool | None:
    """Return whether the API server would listen, without listening; None without aiohttp."""
    import asyncio

    try:
        from aiohttp import web  # type: ignore[import-not-found]
    except ImportError:
        return None
    from gateway.config import Platform, load_gateway_config
    from gateway.platforms.api_server import APIServerAdapter  # type: ignore[import-not-found]

    async def listen(_: Any) -> None:
        pass

    web.TCPSite.start = listen
    settings = load_gateway_config().platforms[Platform("api_server")]
    return bool(asyncio.run(APIServerAdapter(settings).connect()))


def people(run: Any, asked: list[list[str]], codes: list[list[str]]) -> dict[str, Any]:
    """Return approved and waiting users, locked platforms and the answer to strangers.

    Each of `codes`, a platform with a right or wrong code, is approved first.
    """
    import gateway.pairing  # type: ignore[import-not-found]
    from gateway.config import Platform, load_gateway_config
    from hermes_constants import get_hermes_dir  # type: ignore[import-not-found]

    gateway.pairing.PAIRING_DIR = get_hermes_dir("platforms/pairing", "pairing")
    runner = object.__new__(run.GatewayRunner)
    runner.config = load_gateway_config()
    runner.adapters = {}
    runner.pairing_store = store = gateway.pairing.PairingStore()
    for platform, code in codes:
        store.approve_code(platform, code)

    def authorised(platform: str, user: str) -> bool:
        source = run.SessionSource(
            platform=Platform(platform), chat_id=user, user_id=user, chat_type="dm"
        )
        return bool(runner._is_user_authorized(source))

    names = sorted({platform for platform, _ in asked})
    return {
        "authorised": [authorised(*one) for one in asked],
        "approved": {name: sorted(approved(store, name)) for name in names},
        "pending": [[one["platform"], one["user_id"]] for one in store.list_pending()],
        "locked": [name for name in names if store._is_locked_out(name)],
        "behaviour": {name: runner._get_unauthorized_dm_behavior(Platform(name)) for name in names},
    }


def approved(store: Any, platform: str) -> list[str]:
    return [one["user_id"] for one in store.list_approved(platform)]


if __name__ == "__main__":
    main()
