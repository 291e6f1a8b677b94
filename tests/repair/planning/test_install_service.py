"""What restarts a gateway where systemd does not run; with a real one in tests/real/."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import crontab
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.planning import install_service
from hermes_doctor.repair.schedule import choose
from tests.helpers import fake_crontab
from tests.helpers.fake_supervision import Told
from tests.helpers.planned_steps import Steady, finding, owned, plan, sentences

FOUND = finding("GW-UNSUPERVISED", "install-service")


@pytest.fixture(autouse=True)
def outside(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is not a container, and on a home that lasts."""
    owned(monkeypatch, Detached(Home(home), None))
    monkeypatch.setattr(choose, "refuse_temporary_home", lambda home: None)
    monkeypatch.setattr(install_service, "in_container", lambda: False)


def refusal(home: Path) -> str:
    """Why nothing can be installed, and what to do instead."""
    with pytest.raises(CannotFix) as why:
        sentences(Told(home, [], True), FOUND)
    return str(why.value)


@pytest.mark.parametrize("code", ["GW-UNSUPERVISED", "GW-WSL-NO-SYSTEMD"])
def test_a_crontab_line(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """The plan shows the exact line, and planning writes nothing."""
    tab = fake_crontab.use(tmp_path / "managers", monkeypatch)
    [step] = plan(Told(home, [], True, wsl=True), finding(code, "install-service"))
    [line] = step.lines()

    assert line.startswith("+* * * * * env XDG_STATE_HOME=")
    assert f"watch --home {home} --heal --after 2 --also GW-DOWN --once --interval 1m" in line
    assert "starts the gateway again" in step.sentence()
    assert tab.read_text() == fake_crontab.OTHERS


def test_refused_with_cron(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If cron does not run, or something restarts the gateway, nothing is installed."""
    fake_crontab.use(tmp_path / "managers", monkeypatch, runs=False)
    monkeypatch.setattr(install_service, "_STARTERS", ((str(home), "service cron start"),))
    assert "Start cron with `service cron start` first." in refusal(home)
    monkeypatch.setattr(crontab, "is_running", lambda: True)
    owned(monkeypatch, Steady(home, 7, home.parent))
    assert "already. Nothing to do." in refusal(home)


@pytest.mark.parametrize(
    ("names", "programs", "words"),
    [
        ({"runsvdir"}, (), "runit runs. Let it run `hermes-doctor watch --heal --home "),
        ({"s6-svscan"}, (), "s6 runs. Let it run `hermes-doctor watch --heal --home "),
        ({"supervisord"}, ("tmux",), "supervisord runs. Let it run `hermes-doctor watch --heal"),
        (
            set(),
            ("apt-get", "tmux"),
            "install cron` and plan again with `hermes-doctor fix --home ",
        ),
        (set(), ("screen",), "Run `screen -dmS hermes-watch hermes-doctor watch --heal --home "),
        (set(), (), "Run `nohup hermes-doctor watch --heal --home "),
    ],
)
def test_without_cron(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: set[str],
    programs: tuple[str, ...],
    words: str,
) -> None:
    """What is there is named, with the whole command."""
    monkeypatch.setattr(crontab, "is_installed", lambda: False)
    monkeypatch.setattr(install_service, "process_names", lambda: frozenset(names))
    monkeypatch.setattr(install_service, "which", lambda name: name if name in programs else None)
    told = refusal(home)
    assert words in told and str(home) in told
    assert told.startswith("Neither systemd nor cron is installed")


def test_in_a_container(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its engine restarts only its main process, and is told so from the host."""
    monkeypatch.setattr(crontab, "is_installed", lambda: False)
    monkeypatch.setattr(install_service, "in_container", lambda: True)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    start = "Neither systemd nor cron is installed in this container. "
    told = refusal(home)
    assert told.startswith(start) and "`docker update --restart unless-stopped " in told
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    told = refusal(home)
    assert told.startswith(start) and "restartPolicy" in told and "docker" not in told
