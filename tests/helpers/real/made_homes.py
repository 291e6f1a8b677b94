"""Made-up homes for the resolver: what operators write, right and wrong, in many mixtures."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.helpers.real.home_words import (
    ALIASES,
    BUILT_IN,
    CUSTOM,
    KEYS,
    MODELS,
    PLAIN,
    PLATFORMS,
    TASKS,
    UNKNOWN,
    URLS,
)


@dataclass
class Made:
    """A home that is not written yet."""

    config: str | None
    env: str | None
    auth: str | None
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, home: Path) -> None:
        """Make its files."""
        home.mkdir(parents=True)
        for name, text in (
            ("config.yaml", self.config),
            (".env", self.env),
            ("auth.json", self.auth),
        ):
            if text is not None:
                (home / name).write_bytes(text.encode())


def make(seed: int) -> Made:
    """One home; the same for the same seed."""
    dice = random.Random(seed)
    return _Maker(dice).home()


class _Maker:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def often(self, share: float) -> bool:
        return self.dice.random() < share

    def one(self, words: Any) -> Any:
        return self.dice.choice(list(words))

    def home(self) -> Made:
        config = self.config()
        text: str | None = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
        if self.often(0.02):
            text = self.one(
                ("model:\n\tdefault: x\n", "- a\n- b\n", "model: a: b\n", "", "just text\n")
            )
        elif self.often(0.02):
            text = None
        elif self.often(0.05) and text:
            text = "\ufeff" + text.replace("\n", "\r\n")
        names = self.names()
        env = "".join(self.line(name, self.value(name)) for name in names)
        env += self.platform_lines()
        return Made(
            config=text,
            env=None if self.often(0.05) else env,
            auth=self.auth(),
            environment=self.environment(),
        )

    # .env ------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        keys = self.dice.sample(KEYS, self.dice.choice((0, 1, 1, 2, 3, 5)))
        plain = self.dice.sample(sorted(PLAIN), self.dice.choice((0, 0, 1, 2)))
        return [*keys, *plain]

    def value(self, name: str) -> str:
        if name in PLAIN:
            return PLAIN[name]
        if self.often(0.08):
            odd = ("***", "changeme", "your_api_key_here", "abc", "", "none", "${MY_KEY}")
            return str(self.one(odd))
        if name.startswith("KIMI") and self.often(0.5):
            return f"sk-kimi-{self.dice.randrange(10**9)}"
        return f"sk-{name.lower()}-{self.dice.randrange(10**9)}"

    def line(self, name: str, value: str) -> str:
        roll = self.dice.random()
        if roll < 0.70:
            return f"{name}={value}\n"
        forms = (
            f"{name}='{value}'\n",
            f'{name}="{value}"\n',
            f"export {name}={value}\n",
            f"{name}={value}  # my key\n",
            f'{name} = "{value}"\n',
            f"  {name}={value}   \n",
            f"# {name}={value}\n",
            f"{name}=old\n{name}={value}\n",
            f"{name}={value}\r\n",
            f"{name}: {value}\n",
            f"{name}={value}é\n",
            f'{name}="{value}\n',
            f"{name}=\n",
            f"{name}={value}DEEPSEEK_API_KEY=sk-glued-{self.dice.randrange(10**6)}\n",
        )
        return str(self.one(forms))

    def platform_lines(self) -> str:
        """Tokens, lists and policies of some platforms, whole and halved."""
        lines = ""
        for name in self.dice.sample(sorted(PLATFORMS), self.dice.choice((0, 1, 1, 2, 3))):
            needed, more = PLATFORMS[name]
            kept = [v for v in needed if self.often(0.9)]
            kept += [v for v in more if self.often(0.3)]
            lines += "".join(self.line(v, self.platform_value(v)) for v in kept)
        if self.often(0.1):
            lines += f"GATEWAY_ALLOWED_USERS={self.one(('u-1', '*', 'x,y'))}\n"
        if self.often(0.1):
            lines += f"GATEWAY_ALLOW_ALL_USERS={self.one(('true', 'false', '1', 'on'))}\n"
        return lines

    def platform_value(self, name: str) -> str:
        if name.endswith(("_ENABLED", "_ALLOW_ALL_USERS")):
            return str(self.one(("true", "1", "false", "yes")))
        if name.endswith("_ALLOWED_USERS"):
            return str(self.one(("u-1", "u-1,u-2", "*", "other", " u-1 , x")))
        if name.endswith("_POLICY"):
            return str(self.one(("open", "allowlist", "disabled", "pairing")))
        if name.endswith("_URL"):
            return "http://127.0.0.1:9/x"
        return f"1234567:{name.lower()}{self.dice.randrange(10**6)}"

    def platform_block(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.often(0.5):
            made["enabled"] = self.one((True, True, False, "true", "false"))
        for key in ("token", "allow_from", "allowed_users", "dm_policy", "group_policy"):
            if self.often(0.25):
                made[key] = {
                    "token": "111:in-config",
                    "allow_from": self.one((["u-1"], "u-1,u-2", ["*"], [1, 2])),
                    "allowed_users": ["u-1"],
                    "dm_policy": self.one(("open", "allowlist")),
                    "group_policy": "open",
                }[key]
        if self.often(0.2):
            made["extra"] = {"dm_policy": "allowlist", "allow_from": ["u-9"]}
        return made

    def platforms(self) -> dict[str, Any]:
        blocks = {name: self.platform_block() for name in self.dice.sample(sorted(PLATFORMS), 2)}
        roll = self.dice.random()
        if roll < 0.4:
            return blocks
        if roll < 0.8:
            return {"platforms": blocks}
        return self.one(({"gateway": {"platforms": blocks}}, {"platforms": [*blocks]}))  # type: ignore[no-any-return]

    def environment(self) -> dict[str, str]:
        if not self.often(0.3):
            return {}
        names = self.dice.sample([*KEYS, *PLAIN], self.dice.choice((1, 2)))
        return {name: PLAIN.get(name) or f"sk-process-{name.lower()}" for name in names}

    # config.yaml -----------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.often(0.95):
            made["model"] = self.model()
        if self.often(0.45):
            made["providers"] = self.providers()
        if self.often(0.25):
            made["custom_providers"] = self.older()
        if self.often(0.35):
            made["fallback_providers"] = self.fallback()
        if self.often(0.15):
            made["fallback_model"] = self.one((self.link(), [self.link()], "openrouter", None))
        if self.often(0.3):
            made["auxiliary"] = self.auxiliary()
        if self.often(0.4):
            made |= self.platforms()
        if self.often(0.04):
            made["provider"] = self.provider()
        if self.often(0.04):
            made["base_url"] = self.one(URLS)
        if self.often(0.03):
            made["api_base"] = self.one(URLS)
        if self.often(0.04):
            made[self.one(KEYS)] = f"sk-in-config-{self.dice.randrange(10**6)}"
        if self.often(0.05):
            made["credential_pool_strategies"] = {
                self.one(BUILT_IN): self.one(("fill_first", "least_used", "round_robin"))
            }
        return made

    def provider(self) -> Any:
        roll = self.dice.random()
        if roll < 0.45:
            return self.one(BUILT_IN)
        if roll < 0.60:
            return self.one(ALIASES)
        if roll < 0.78:
            return self.one((*CUSTOM, "custom:openkey", "custom:relay-one", "OpenKey", "relay-one"))
        if roll < 0.86:
            return self.one(("auto", "custom", ""))
        if roll < 0.94:
            return self.one(UNKNOWN)
        return self.one((None, False, 123, " OpenRouter ", "${PROVIDER}"))

    def model(self) -> Any:
        roll = self.dice.random()
        if roll < 0.15:
            return self.one(MODELS)
        if roll < 0.18:
            return self.one((None, ["x"], 4.5, True))
        made: dict[str, Any] = {}
        if self.often(0.9):
            made[self.one(("default", "default", "default", "model", "name"))] = self.one(MODELS)
        if self.often(0.03):
            made["default"] = self.one((4.5, 456, {"a": "b"}))
        if self.often(0.85):
            made["provider"] = self.provider()
        if self.often(0.35):
            made[self.one(("base_url", "base_url", "base_url", "api_base"))] = self.one(URLS)
        if self.often(0.15):
            made[self.one(("api_key", "api"))] = self.secret("model")
        if self.often(0.08):
            made[self.one(("key_env", "api_key_env"))] = self.one(KEYS)
        if self.often(0.15):
            made["api_mode"] = self.one(
                (
                    "chat_completions",
                    "codex_responses",
                    "anthropic_messages",
                    "nonsense",
                    "bedrock_converse",
                )
            )
        return made

    def secret(self, where: str) -> str:
        return str(
            self.one(
                (
                    f"sk-{where}-{self.dice.randrange(10**6)}",
                    f"sk-{where}-{self.dice.randrange(10**6)}",
                    "${MY_KEY}",
                    "${RELAY_KEY}",
                    "$MY_KEY",
                    "***",
                    "",
                )
            )
        )

    def entry(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.often(0.93):
            made[self.one(("base_url", "base_url", "url", "api", "baseUrl"))] = self.one(URLS)
        if self.often(0.1):
            made["api"] = self.one(URLS)
        if self.often(0.8):
            roll = self.dice.random()
            if roll < 0.45:
                made["api_key"] = self.secret("entry")
            elif roll < 0.75:
                made["key_env"] = self.one(KEYS)
            elif roll < 0.9:
                made["api_key_env"] = self.one(KEYS)
            else:
                made |= {"api_key": self.secret("entry"), "key_env": self.one(KEYS)}
        if self.often(0.15):
            made[self.one(("api_mode", "transport"))] = self.one(
                ("chat_completions", "codex_responses", "anthropic_messages", "x")
            )
        if self.often(0.2):
            made[self.one(("default_model", "model"))] = self.one(MODELS)
        if self.often(0.12):
            made["name"] = self.one(("Open Key", "openkey", "other"))
        if self.often(0.08):
            made["enabled"] = self.one((False, True, "false", "no"))
        return made

    def providers(self) -> Any:
        if self.often(0.04):
            return self.one(([], None, "openkey", [{"name": "openkey"}]))
        names = self.dice.sample(CUSTOM, self.dice.choice((1, 1, 2, 3)))
        return {name: self.entry() if self.often(0.97) else self.one((None, "x")) for name in names}

    def older(self) -> Any:
        if self.often(0.08):
            return self.one(({"openkey": self.entry()}, "openkey", []))
        names = self.dice.sample(CUSTOM, self.dice.choice((1, 2)))
        return [{**({"name": name} if self.often(0.96) else {}), **self.entry()} for name in names]

    def link(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.often(0.95):
            made["provider"] = self.provider()
        if self.often(0.95):
            made["model"] = self.one(MODELS)
        if self.often(0.25):
            made["base_url"] = self.one(URLS)
        if self.often(0.25):
            made[self.one(("api_key", "key_env", "api_key_env"))] = self.one(
                (*KEYS, "sk-in-link-1")
            )
        return made

    def fallback(self) -> Any:
        if self.often(0.12):
            return self.one(
                (
                    "openrouter",
                    ["openrouter"],
                    {"provider": "nous", "model": "x"},
                    '[{"provider": "x"}]',
                    None,
                )
            )
        return [self.link() for _ in range(self.dice.choice((1, 1, 2, 3)))]

    def auxiliary(self) -> Any:
        if self.often(0.04):
            return self.one((None, "auto", []))
        made: dict[str, Any] = {}
        for task in self.dice.sample(TASKS, self.dice.choice((1, 2))):
            block: dict[str, Any] = {}
            if self.often(0.8):
                block["provider"] = self.one(
                    ("auto", "openrouter", "openai", "custom", "main", "openkey", None, "")
                )
            if self.often(0.6):
                block["model"] = self.one(("gpt-4o-mini", "auto", "", None))
            if self.often(0.3):
                block["base_url"] = self.one(URLS)
            if self.often(0.3):
                block[self.one(("api_key", "key_env", "api_key_env"))] = self.one(
                    (*KEYS, "${MY_KEY}")
                )
            if self.often(0.1):
                block["api_mode"] = "codex_responses"
            made[task] = block if self.often(0.97) else None
        return made

    # auth.json -------------------------------------------------------------------------------

    def auth(self) -> str | None:
        if not self.often(0.3):
            return None
        if self.often(0.05):
            return "{broken"
        pool: dict[str, Any] = {}
        names = [*BUILT_IN, "custom:openkey", "custom:relay-one"]
        likely = self.one(("openrouter", "deepseek", "custom:openkey"))
        for name in (*self.dice.sample(names, 2), likely):
            pool[name] = [
                self.credential(name, number) for number in range(self.dice.choice((1, 1, 2)))
            ]
        made: dict[str, Any] = {"version": 1, "credential_pool": pool, "providers": {}}
        if self.often(0.1):
            made["suppressed_sources"] = {"openrouter": ["env:OPENROUTER_API_KEY"]}
        return json.dumps(made)

    def credential(self, name: str, number: int) -> dict[str, Any]:
        source = self.one(
            ("manual", "manual", "manual", "env:OPENROUTER_API_KEY", "config:openkey")
        )
        token = f"sk-pool-{name}-{self.dice.randrange(10**6)}"
        made: dict[str, Any] = {
            "id": f"{self.dice.randrange(16**6):06x}",
            "label": f"mine {number}",
            "auth_type": "api_key",
            "priority": number,
            "source": source,
            "access_token": token if source == "manual" and self.often(0.95) else "",
            "request_count": self.dice.randrange(4),
        }
        if self.often(0.3):
            made["base_url"] = self.one(URLS)
        if self.often(0.3):
            made |= {
                "last_status": self.one(("exhausted", "dead", "ok")),
                "last_status_at": self.one((1_600_000_000.0, 4_000_000_000.0)),
                "last_error_code": self.one((401, 402, 429)),
            }
        return made
