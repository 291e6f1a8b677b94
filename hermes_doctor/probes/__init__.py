"""The probes: each reads one part of the world, lazily, once a run, changing nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.probes.once import Cell, once

if TYPE_CHECKING:
    from hermes_doctor.model import Gateway
    from hermes_doctor.probes.configuration import ConfigCopy, ConfigFile
    from hermes_doctor.probes.databases import Databases
    from hermes_doctor.probes.environment import EnvFile
    from hermes_doctor.probes.installation import Installation
    from hermes_doctor.probes.runs import UnfinishedRun
    from hermes_doctor.probes.secrets import SecretFile
    from hermes_doctor.probes.structure import Structure
    from hermes_doctor.sqlite.header import Header
    from hermes_doctor.sqlite.schema import Schema


class Probes:
    """All that a check may ask about one home.

    Every method answers from memory the second time, may be called from any thread, and
    raises `CouldNotLook` with the reason when there is no answer.
    """

    def __init__(self, home: Home, *, deep: bool = False) -> None:
        self.home = home
        self.deep = deep
        self.cells: dict[tuple[object, ...], Cell] = {}
        self.guard = threading.Lock()

    @once(limit=2)
    def config(self) -> ConfigFile | None:
        """config.yaml, parsed or with the place where it fails; None when there is none."""
        from hermes_doctor.probes import configuration

        return configuration.read(self.home)

    @once(limit=4)
    def config_copies(self) -> list[ConfigCopy]:
        """Older copies of config.yaml that do parse, newest first."""
        from hermes_doctor.probes import configuration

        return configuration.copies(self.home)

    @once(limit=2)
    def env(self) -> EnvFile | None:
        """.env as bytes and how they are encoded; None when there is none."""
        from hermes_doctor.probes import environment

        return environment.read(self.home)

    @once(limit=2)
    def databases(self) -> Databases:
        """The databases that this home has."""
        from hermes_doctor.probes import databases

        return databases.find(self.home)

    @once(limit=2)
    def header(self, path: Path) -> Header:
        """The first page of a database, judged."""
        from hermes_doctor.sqlite import header

        return header.read(path)

    @once(limit=2)
    def schema(self, path: Path) -> Schema:
        """What a database is made of, read page by page without opening it."""
        from hermes_doctor.sqlite import schema

        return schema.read(path)

    def structure(self, path: Path) -> Structure:
        """The schema of a database beside that of the installed Hermes; told from other probes."""
        from hermes_doctor.probes import structure

        return structure.compare(self, path)

    @once(limit=2)
    def secrets(self) -> list[SecretFile]:
        """The files that hold secrets, with who may read them."""
        from hermes_doctor.probes import secrets

        return secrets.find(self.home)

    @once(limit=3)
    def gateways(self) -> list[Gateway]:
        """The running gateways of this home."""
        from hermes_doctor.probes import processes

        return processes.gateways_of(self.home)

    @once(limit=3)
    def installation(self) -> Installation | None:
        """The Hermes that runs here, or the newest one installed; None when there is none."""
        from hermes_doctor.probes import installation

        return installation.find(self.home, self.gateways)

    @once(limit=2)
    def unfinished_runs(self) -> list[UnfinishedRun]:
        """Runs of this tool that were cut off."""
        from hermes_doctor.probes import runs

        return runs.unfinished(self.home)
