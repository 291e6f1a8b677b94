"""Homes before and after a switch of provider, and the steps in between."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.backup.records.journal import ItemRecord, Journal
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.operations.provider_switch.plan import Proof, SwitchPlan
from hermes_doctor.repair.transaction.run import Run
from hermes_doctor.repair.transaction.targets import Item
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.support import put

ROUTER = "model:\n  default: openai/gpt-4o-mini  # cheap\n  provider: openrouter\n"
ENV = "OPENROUTER_API_KEY=sk-router-12345678\n"
RELAY = "https://relay.example/v1"
KEY = "sk-canary-0123456789abcdef"


class Installed(GivenAnswers):
    """A home with a given release of Hermes."""

    def __init__(self, home: Path, version: str = "0.19.0") -> None:
        super().__init__(Home(home))
        self.version = version

    def hermes_installation(self) -> Installation | None:
        """Return the release."""
        return Installation(self.version, Path("/nowhere"), running=False)


def write(home: Path, config: str = ROUTER, env: str | None = ENV) -> Path:
    """Write the two files of a home."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    put(home / "config.yaml", config)
    if env is not None:
        put(home / ".env", env)
    return home


def carry_out(home: Path, switch: SwitchPlan, version: str = "0.19.0") -> tuple[Journal, Proof]:
    """Apply the plan in a transaction, without a request to the provider."""
    proof = Proof(switch, lambda: Installed(home, version), tested=False)
    record = ItemRecord("switch-provider", "", "switch", "switch-provider")
    run = Run(Home(home), Vault(Home(home)), kind="fix", reason="a test")
    return run.apply([Item(record, switch.steps)], proof), proof
