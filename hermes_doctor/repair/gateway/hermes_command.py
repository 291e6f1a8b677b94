"""Build the Hermes command line that works on one home and no other.

HERMES_HOME alone does not do that: for a root home Hermes switches to the profile that
`active_profile` names. Nor does `--profile default` for `python -m hermes_cli.main`: that module is
loaded a second time, under its own name, and by then the arguments are gone. And Hermes exits if
the name is not a valid profile name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system.accounts import Account, refuse_untrusted
from hermes_doctor.core.system.files import read, read_head
from hermes_doctor.diagnosis.probes.other_homes import BELIEVING, ENDED
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes import process_stat
from hermes_doctor.hermes.processes.home_of import holds_lock_in, is_gateway, profile_in
from hermes_doctor.hermes.processes.lineage import command_line

MODULE = "hermes_cli.main"
DEFAULT = "default"
"""The profile name of the root home in every release."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def profile_arguments(home: Home, folder: str | None) -> list[str]:
    """Return the `--profile` arguments that make Hermes work on this home."""
    root = _root(home, folder)
    if home.profile:
        # Without arguments Hermes trusts a HERMES_HOME inside a folder of profiles.
        known = home.profile != DEFAULT and _NAME.fullmatch(home.profile)
        ours = root / "profiles" / home.profile == home.path
        return ["--profile", home.profile] if known and ours else []
    if root == home.path:
        return ["--profile", DEFAULT]
    if name := _active(root):
        raise CannotFix(
            "Hermes would use the active profile {profile} of {home} instead. Run `hermes "
            "profile use default` first.",
            profile=name,
            home=root,
        )
    return []


def unit_name(home: Home, folder: str | None) -> str:
    """The name that Hermes' installer gives to the unit of a home."""
    import hashlib

    root = _root(home, folder)
    if home.path == root:
        return "hermes-gateway.service"
    if home.path.parent == root / "profiles" and _NAME.fullmatch(home.path.name):
        return f"hermes-gateway-{home.path.name}.service"
    digest = hashlib.sha256(str(home.path).encode("utf-8", "surrogateescape")).hexdigest()
    return f"hermes-gateway-{digest[:8]}.service"


def entry_command(home: Home, python: Path, user: Account, folder: str | None) -> list[str]:
    """The command that runs Hermes: its module, or its script if the module would switch homes."""
    if home.profile or not _active(_root(home, folder)):
        return [str(python), "-m", MODULE]
    script = python.with_name("hermes")
    try:
        plain = b"python" in read_head(script, 4096)[0].partition(b"\n")[0]
    except (FileNotFoundError, CouldNotLook):
        plain = False
    if not plain:
        refuse_other_profile(home, folder, f"Hermes without its script {script}")
    refuse_untrusted(script, user)
    return [str(python), str(script)]


def names_profile(words: Sequence[str]) -> bool:
    """Whether a command names its profile so that Hermes does not switch to another."""
    named = profile_in(list(words))
    return bool(named) and not (named == DEFAULT and MODULE in words)


def refuse_other_profile(home: Home, folder: str | None, what: str) -> None:
    """Raise CannotFix if a command without a profile would work on another, active profile."""
    if home.profile is None and (name := _active(_root(home, folder))):
        raise CannotFix(
            "{program} would run the gateway of the active profile {profile}. Run `hermes "
            "profile use default` first.",
            program=what,
            profile=name,
        )


def _root(home: Home, folder: str | None) -> Path:
    """The home that Hermes takes for the root: ~/.hermes if this home is inside it."""
    native = (Path(folder) if folder else Path("/")) / ".hermes"
    try:
        native = native.resolve()
    except (OSError, RuntimeError):
        return home.path
    if folder and home.path.is_relative_to(native):
        return native
    return home.path.parent.parent if home.profile else home.path


def _active(root: Path) -> str | None:
    """The profile that a root home was switched to."""
    try:
        name = read(root / "active_profile", 4096)[0].decode().strip()
    except (FileNotFoundError, CouldNotLook, UnicodeDecodeError):
        return None
    return clean(name)[:64] if name and name != DEFAULT else None


def refuse_copied_home(probes: Probes) -> None:
    """Raise CannotFix if Hermes would mistake the gateway of another home for this one's."""
    runtime = probes.gateway.runtime()
    named = runtime.state_owner
    if named is None or runtime.state in ENDED:
        return
    seen = process_stat.stat(named.pid)
    if seen is None or seen.doing == "Z" or named.start_time not in (None, seen.start_time):
        return
    if not is_gateway(command_line(named.pid)) or holds_lock_in(named.pid, probes.home.path):
        return
    installation = probes.hermes.installation()
    if installation is not None and installation.release < BELIEVING:
        return
    raise CannotFix(
        "gateway_state.json names process {pid}, the gateway of another home, so Hermes would "
        "not start. The home was probably copied: move that file away first.",
        pid=named.pid,
    )
