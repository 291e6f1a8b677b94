"""merge-approvals: who was paired in a folder that does not count."""

from __future__ import annotations

import json
from pathlib import Path

from hermes_doctor.home import Home
from tests import looking, refusing, support
from tests.connecting import Scene, ask


def test_plan(home: Path) -> None:
    """The approved of both folders, in the one that counts; what is there wins."""
    support.put(home / ".env", refusing.TOKEN)
    refusing.approved(home, "42", "7001", folder="platforms/pairing")
    path = refusing.approved(home, "7001", folder="pairing")
    kept = json.loads(path.read_text())["7001"] | {"user_name": "Robin"}
    support.put(path, json.dumps({"7001": kept}, indent=2))
    scene = Scene(home, {}, running=False, version="0.17.0")
    _, [finding] = ask("pairing-requests", scene)
    fix = looking.PLUGINS.fix("merge-approvals")
    assert fix

    [step] = fix.plan(scene, finding)

    assert step.changes()[0].path == Home(home) / "pairing/telegram-approved.json"
    texts = step.texts()
    assert texts
    made = json.loads(texts[2])
    assert sorted(made) == ["42", "7001"]
    assert made["7001"]["user_name"] == "Robin"
    support.put(path, texts[2])
    again = Scene(home, {}, running=False, version="0.17.0")
    assert [*fix.plan(again, finding)] == []
    assert ask("pairing-requests", again)[1] == []
