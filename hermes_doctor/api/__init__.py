"""All that a check or a fix may import.

A check is a function that asks the probes one question and yields findings:

    @check(id="env-encoding", group="configuration", codes=["ENV-BOM"])
    def env_encoding(probes: Probes) -> Iterator[Finding]:
        \"\"\"Can Hermes read .env from its first line on?\"\"\"

A fix is a function that turns one finding into steps, writing nothing:

    @fix(id="rewrite-env", codes=["ENV-BOM"], safety=Safety.SAFE)
    def rewrite_env(probes: Probes, finding: Finding) -> Iterator[Step]:
        \"\"\"Rewrite .env as UTF-8 without a byte order mark.\"\"\"

A check that yields nothing found nothing wrong. With `needs="gateway"` it is skipped, and not even
loaded, unless a gateway runs; `diagnosis/plugins/declare.py` lists the needs. It raises `Skip(why)`
if the question does not apply for another reason, and raises or yields `CouldNotLook(why)` if there
is no answer. Anything else that it raises is reported as a crash, and the other checks go on. It
reads through `probes`, never with `open()`.

A finding has a `title` (the symptom), a `detail` (its effect, then its cause) and a `next` step.
Make them with `text("{platform} rejects the app secret", platform=label)`: whole sentences with
named values.

A fix yields `ReplaceSpan`, `ReplaceFile`, `ReplaceDatabase`, `MoveAside`, `Remove`, `SetMode`,
`SetOwner`, `GatewayStep` and others, and raises `CannotFix(why)` to decline. It imports them inside
its function, because the fixes of an operator's folder are all loaded for a report. Its `safety` is
`SAFE` (applied by `--apply`), `CONFIRM` (asks first) or `MANUAL` (only described). `then` names the
fix that comes next if this one is not enough. With `personal=True` it is applied only for the
person who is named, with `optional=True` only if its code is named. With `gives_up_data=True` it
says in `losses` what is lost, a watch never applies it, and `--yes` only if its code is named.

What only some plugins need is in topics:

- `hermes_doctor.api.tools`: words for people, files, patterns, and `known_or`.
- `hermes_doctor.api.repairs`: functions that turn a finding into steps, or repair a database copy.
- `hermes_doctor.api.edits`: edits of config.yaml and .env, for findings and fixes.
- `hermes_doctor.api.settings`: what the settings say, and what is wrong in them.
- `hermes_doctor.api.providers`: provider, model and key of the next message.
- `hermes_doctor.api.database`: the condition and structure of databases, and who uses them.
- `hermes_doctor.api.gateway`: its processes, connections, services and installation.
- `hermes_doctor.api.stores`: stores, scheduled jobs, logs and free space.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import import_on_first_use
from hermes_doctor.core.message import text
from hermes_doctor.core.model import (
    CannotFix,
    CouldNotLook,
    Evidence,
    Finding,
    Partly,
    Safety,
    Severity,
    Skip,
)
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.plugins.declare import Check, Fix, check, fix
from hermes_doctor.diagnosis.probes.probes import Probes

if TYPE_CHECKING:  # the steps of a fix
    from hermes_doctor.diagnosis.step import Step
    from hermes_doctor.repair.steps.database import ReplaceDatabase, SaveLost
    from hermes_doctor.repair.steps.files import (
        FreeSpace,
        MoveAside,
        MoveLog,
        Remove,
        ReplaceFile,
        ReplaceSpan,
        SetMode,
        SetOwner,
    )
    from hermes_doctor.repair.steps.gateway import GatewayStep
    from hermes_doctor.repair.steps.machine import EnableLinger, EnableUnit, ResetFailed
else:
    __getattr__, _steps = import_on_first_use(
        __name__,
        {
            "hermes_doctor.diagnosis.step": "Step",
            "hermes_doctor.repair.steps.database": "ReplaceDatabase SaveLost",
            "hermes_doctor.repair.steps.files": "MoveAside MoveLog Remove ReplaceFile "
            "ReplaceSpan SetMode SetOwner FreeSpace",
            "hermes_doctor.repair.steps.gateway": "GatewayStep",
            "hermes_doctor.repair.steps.machine": "EnableLinger EnableUnit ResetFailed",
        },
    )
    __all__ = [
        *_steps,
        "CannotFix",
        "Check",
        "CouldNotLook",
        "Evidence",
        "Finding",
        "Fix",
        "Home",
        "Partly",
        "Probes",
        "Safety",
        "Severity",
        "Skip",
        "check",
        "fix",
        "snapshot",
        "text",
    ]
