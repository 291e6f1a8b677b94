"""Sends notices through a command, a webhook, or a message from Hermes itself.

Each channel has a time limit. Notices contain no secrets, and error messages name neither the
webhook address nor the command, because these may contain one.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import TYPE_CHECKING, Any, Protocol

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.outgoing import masked
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system import limits
from hermes_doctor.operations.watch import secret_options
from hermes_doctor.operations.watch.events import WatchEvent
from hermes_doctor.operations.watch.web_address import WebAddress

if TYPE_CHECKING:
    from pathlib import Path

COMMAND_LIMIT, HERMES_LIMIT = 30.0, 60.0
"""Time limits in seconds."""
MOST = 4000
"""Characters per environment variable: the kernel limits their size."""
PAUSES = (1.0, 5.0)
"""Seconds between the attempts of a webhook."""
SENDS_SINCE = (0, 15)
"""The first release with `hermes send`."""


class NotSent(Exception):
    """A notice was not delivered; the message says why and contains no secret."""


class Notice(NamedTuple):
    """An event to be sent, with its home and the subjects that are broken now."""

    event: WatchEvent
    home: str
    broken: frozenset[str]
    """Subjects of current problems in lower case, platform names among them."""

    def words(self) -> str:
        """The event as one line for a chat, without the marks that make Hermes attach a file."""
        text = f"hermes-doctor on {socket.gethostname()} ({self.home}): {self.event.sentence()}"
        return clean(text).replace("MEDIA:", "MEDIA ").replace("[[", "[ [")[:1500]

    def document(self) -> dict[str, Any]:
        """The event as JSON data: `text` and `content` are the fields that chat services show."""
        text = self.words()
        more = {"host": socket.gethostname(), "text": text, "content": text}
        return masked(self.event.document(self.home) | more)


class Channel(Protocol):
    """A way to send notices."""

    name: str

    def send(self, notice: Notice) -> None:
        """Send the notice, or raise NotSent."""


class CommandChannel:
    """Runs the operator's command with the event as JSON on stdin and in environment variables."""

    name = "--notify-command"

    def __init__(self, command: str, limit: float = COMMAND_LIMIT) -> None:
        """`@FILE` runs the file as a script, so that its text is not in the process list."""
        secret_options.option_value(command, "--notify-command")
        file = str(secret_options.option_file(command)) if command.startswith("@") else None
        self.words = ["/bin/sh", file] if file else ["/bin/sh", "-c", command]
        self.limit = limit

    def send(self, notice: Notice) -> None:
        import signal
        import subprocess

        data = notice.document()
        fields = {
            f"HERMES_DOCTOR_{name.upper()}": str(data[name] or "")[:MOST].replace("\0", "")
            for name in ("event", "code", "severity", "subject", "title", "home", "time", "text")
        }
        try:
            with limits.lifted():
                process = subprocess.Popen(
                    self.words,
                    env={**os.environ, **fields},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise NotSent(f"the command could not be started ({type(error).__name__})") from None
        try:
            process.communicate(json.dumps(data).encode() + b"\n", timeout=self.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise NotSent(
                f"the command took longer than {self.limit:g} s and was stopped"
            ) from None
        if process.returncode:
            raise NotSent(f"the command failed with exit code {process.returncode}")


class WebhookChannel:
    """Posts the event as JSON to a URL, with a few retries."""

    name = "--notify-webhook"

    def __init__(self, url: str, pauses: tuple[float, ...] = PAUSES) -> None:
        self.address = WebAddress(url, self.name)
        self.pauses = pauses

    def send(self, notice: Notice) -> None:
        data = json.dumps(notice.document()).encode()
        for pause in (*self.pauses, None):
            failure = self.address.post(data)
            if failure is None:
                return
            if pause is None or failure.lasting:
                raise NotSent(failure.why)
            time.sleep(pause)


_AS_IT_IS = {"HERMES_DISABLE_LAZY_INSTALLS": "1"}
"""Keep `hermes send` from installing missing packages."""


class HermesChannel:
    """Sends the notice with `hermes send`, through a platform of the watched Hermes."""

    name = "hermes send"

    def __init__(self, home: Home, target: str) -> None:
        platform = target.partition(":")[0]
        if not platform.isidentifier() or any(ord(sign) < 33 for sign in target):
            raise Trouble(
                "--notify-hermes needs PLATFORM or PLATFORM:CHANNEL; got {target!r}.", target=target
            )
        self.home = home
        self.target = target
        self.platform = platform.lower()

    def send(self, notice: Notice) -> None:
        from hermes_doctor.repair.gateway.manager_commands import (
            login_environment,
            owner_of,
            run_command,
        )

        if self.platform in notice.broken:
            raise NotSent(f"{self.platform} itself has a problem")
        try:
            owner = owner_of(self.home)
            python = self.python()
            env = login_environment(owner) | {"HERMES_HOME": str(self.home.path)} | _AS_IT_IS
            command_result = run_command(
                [str(python), "-m", "hermes_cli.main", "send", "--to", self.target, notice.words()],
                user=owner,
                env=env,
                limit=HERMES_LIMIT,
            )
        except (CannotFix, CouldNotLook) as why:
            raise NotSent(str(why)) from None
        if command_result.code:
            raise NotSent(f"`hermes send` failed with exit code {command_result.code}")

    def python(self) -> Path:
        """The interpreter of the installed Hermes; NotSent if it has no `hermes send`."""
        from hermes_doctor.diagnosis.probes.probes import Probes
        from hermes_doctor.repair.gateway.detached import python_of
        from hermes_doctor.repair.gateway.manager_commands import owner_of

        installation = Probes(self.home).hermes.installation()
        if installation is None:
            raise NotSent("Hermes was not found")
        if installation.release < SENDS_SINCE:
            raise NotSent(
                f"Hermes {installation.version} has no `hermes send`; version 0.15 is needed"
            )
        return python_of(installation.where, owner_of(self.home))
