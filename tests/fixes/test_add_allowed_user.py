"""add-allowed-user: the one id that was turned away, in the list that counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import locked_out_users, support
from tests.helpers.fix_contract import Planted
from tests.helpers.gateway_home import Scene, ask
from tests.helpers.let_user_in import fix, left_alone, let_in
from tests.helpers.one_check import PLUGINS

CODE = "AUTHZ-UNAUTHORIZED"
ENV = {
    "a list": ("TELEGRAM_ALLOWED_USERS=7001\n", "TELEGRAM_ALLOWED_USERS=7001,42\n"),
    "quoted": ('TELEGRAM_ALLOWED_USERS="7001, 7002"\n', "7001, 7002,42"),
    "a list for all": ("GATEWAY_ALLOWED_USERS=7001\n", "GATEWAY_ALLOWED_USERS=7001,42\n"),
    "twice": (
        "TELEGRAM_ALLOWED_USERS=1\nTELEGRAM_ALLOWED_USERS=7001\n",
        "TELEGRAM_ALLOWED_USERS=1\nTELEGRAM_ALLOWED_USERS=7001,42\n",
    ),
}
FIRST = {"none": "", "an empty one": "TELEGRAM_ALLOWED_USERS=\n"}
NO_CODES = "telegram:\n  unauthorized_dm_behavior: ignore\n"


@pytest.mark.sampled
@pytest.mark.parametrize("case", FIRST)
def test_the_first_list(home: Path, case: str) -> None:
    """Only where nobody is paired or gets a code; the plan says that it shuts out the others."""
    support.put(home / ".env", locked_out_users.TOKEN + FIRST[case])
    support.put(home / "config.yaml", support.CONFIG + NO_CODES)
    locked_out_users.turned_away(home)

    done = support.doctor("fix", CODE, "--subject", "telegram 42", "--home", home)

    assert "from now on only users on this allowlist" in " ".join(done.out.split())
    assert "TELEGRAM_ALLOWED_USERS=42" in done.out
    with let_in(home, CODE, "telegram 42"):
        assert (home / ".env").read_text().endswith("TELEGRAM_ALLOWED_USERS=42\n")


@pytest.mark.parametrize("paired", [True, False])
def test_no_first_list_where_people_are_paired(home: Path, paired: bool) -> None:
    """It would shut out who is paired, and strangers would be given no code any more."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.turned_away(home)
    if paired:
        locked_out_users.approved(home, "7001")

    said = plan(home, NO_CODES if paired else "")

    assert "hermes pairing approve telegram CODE" in said


def test_a_list_for_all_that_the_service_sets(home: Path) -> None:
    """It is changed there."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.turned_away(home)

    said = plan(home, variables={"GATEWAY_ALLOWED_USERS": "7001"}, running=True)

    assert "gateway sets GATEWAY_ALLOWED_USERS" in said


@pytest.mark.sampled
@pytest.mark.parametrize("case", ENV)
def test_in_env(home: Path, case: str) -> None:
    """Cured, twice equals once, undone; comments and all other lines stay."""
    before, after = ENV[case]
    support.put(home / ".env", f"# mine\r\n{locked_out_users.TOKEN}{before}")
    locked_out_users.turned_away(home)

    with let_in(home, CODE, "telegram 42"):
        text = (home / ".env").read_bytes().decode()
        assert text.startswith(f"# mine\r\n{locked_out_users.TOKEN}")
        assert after.replace("\n", "") in text.replace("\r", "").replace("\n", "")


CONFIG = {
    "numbers": ("  allow_from: [7001]  # us\n", "  allow_from: [7001, 42]  # us\n"),
    "lines": (
        "  allow_from:\n    - '7001'\n  # end\n",
        "  allow_from:\n    - '7001'\n    - '42'\n  # end\n",
    ),
    "text": ("  allow_from: '7001'\n", "  allow_from: '7001,42'\n"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CONFIG)
def test_in_config(home: Path, case: str) -> None:
    """Where the list is, of the kind that is there."""
    before, after = CONFIG[case]
    support.put(home / ".env", locked_out_users.TOKEN)
    support.put(home / "config.yaml", f"{support.CONFIG}telegram:\n{before}")
    locked_out_users.turned_away(home)

    with let_in(home, CODE, "telegram 42"):
        made = (home / "config.yaml").read_text()
        expected = f"{support.CONFIG}telegram:\n{after}"
        assert made.replace('"', "'") == expected


def test_only_who_is_named(home: Path) -> None:
    """Neither all repairs at once nor the code alone let anybody in, --yes or not."""
    support.put(home / ".env", locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=7001\n")
    locked_out_users.turned_away(home)
    locked_out_users.turned_away(home, "43")

    for words in ([], ["--yes"], [CODE, "--yes"], [CODE]):
        left_alone(home, *words)
    left_alone(home, CODE, "--subject", "telegram 44", "--yes", found=False)
    with let_in(home, CODE, "telegram 43"):
        assert "TELEGRAM_ALLOWED_USERS=7001,43\n" in (home / ".env").read_text()


@pytest.mark.sampled
@pytest.mark.parametrize("user", ["*", "42,43", "kelly", "@42"])
def test_never_what_is_no_id(home: Path, user: str) -> None:
    """Nothing that could let in anybody else."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.turned_away(home, user)
    sick = support.contents(home)

    done = fix(home, CODE, "--yes")

    assert done.json["repair"]["runs"] == []
    assert support.contents(home) == sick
    finding = support.finding(support.check(home), CODE)
    forged = fix(home, CODE, "--subject", finding["subject"], "--yes")
    assert forged.json["repair"]["runs"] == []


def plan(home: Path, config: str = "", user: str = "42", **scene: object) -> str:
    """Why it is declined."""
    support.put(home / "config.yaml", support.CONFIG + config)
    options = {"variables": {}, "running": False} | scene
    probes = Scene(home, **options)  # type: ignore[arg-type]
    _, findings = ask("refused-users", probes)
    fix = PLUGINS.fix("add-allowed-user")
    assert fix
    [finding] = [one for one in findings if one.data.get("user") == user]
    try:
        steps = list(fix.plan(probes, finding))
    except Exception as why:  # noqa: BLE001
        return str(why)
    return f"{len(steps)} steps"


def test_set_by_the_service(home: Path) -> None:
    """A list that the service sets is changed there."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.turned_away(home)

    said = plan(home, variables={"TELEGRAM_ALLOWED_USERS": "7001"}, running=True)

    assert "Add ,42 to it there" in said


def test_own_list_of_the_adapter(home: Path) -> None:
    """A list in .env would replace the one that the adapter goes by."""
    support.put(home / ".env", "WEIXIN_TOKEN=canary12345678\nWEIXIN_ACCOUNT_ID=wx1\n")
    locked_out_users.turned_away(home, "wx9", "weixin")
    config = "platforms:\n  weixin:\n    extra: {dm_policy: allowlist, allow_from: [wx2]}\n"

    assert "allow_from" in plan(home, config, user="wx9")


def test_managed_home(home: Path) -> None:
    """A home that a package manager writes is changed there."""
    support.put(home / ".env", locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=7001\n")
    support.put(home / ".managed", "")
    locked_out_users.turned_away(home)

    assert "managed" in plan(home)


def test_no_longer_in_evidence(home: Path) -> None:
    """A finding without the line behind it adds nobody."""
    support.put(home / ".env", locked_out_users.TOKEN)
    locked_out_users.turned_away(home)
    scene = Scene(home, {}, running=False)
    _, [finding] = ask("refused-users", scene)
    (home / "logs/errors.log").unlink()
    fix = PLUGINS.fix("add-allowed-user")
    assert fix

    with pytest.raises(Exception, match="no longer show"):
        list(fix.plan(Scene(home, {}, running=False), finding))


def test_no_watch_does_it(home: Path) -> None:
    """Nor does a watch that was told to agree to everything."""
    from hermes_doctor.operations.watch import consent
    from hermes_doctor.repair.transaction.plan import plan as planned

    support.put(home / ".env", locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=7001\n")
    locked_out_users.turned_away(home, times=6)
    scene = Scene(home, {}, running=False)
    _, findings = ask("refused-users", scene)
    [one] = planned(scene, PLUGINS, findings)

    assert one.steps
    assert "you have to decide" in (
        consent.refusal(one, frozenset({CODE, "add-allowed-user"})) or ""
    )


def test_the_question_and_the_hint_name_the_person(home: Path) -> None:
    """Who is not asked, since there is no terminal, is told how to say yes to this very person."""
    support.put(home / ".env", locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=7001\n")
    locked_out_users.turned_away(home)

    offer = support.finding(support.check(home), CODE)["fix"]
    assert f"fix {CODE} --subject 'telegram 42' --apply" in offer["command"]
    done = support.doctor("fix", CODE, "--apply", "--yes", "--home", home)

    assert "--subject 'telegram 42'" in done.out.replace("\n", " ")
    assert "allow 42 on Telegram" in done.out


def planted(home: Path) -> None:
    """Somebody was turned away, and there is an allowlist."""
    support.put(home / ".env", locked_out_users.TOKEN + "TELEGRAM_ALLOWED_USERS=7001\n")
    locked_out_users.turned_away(home)


PLANTED = Planted("AUTHZ-UNAUTHORIZED", planted, options=("--subject", "telegram 42"))
