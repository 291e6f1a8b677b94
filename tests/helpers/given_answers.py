"""Probes of which a test gives some answers itself."""

from __future__ import annotations

from typing import Any

from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.scope import View


class GivenAnswers(Probes):
    """Probes whose methods named VIEW_METHOD answer instead of that method of that view.

    A test that defines `gateway_running` gives the answer of `gateway.running`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        views = {name: view for name, view in vars(self).items() if isinstance(view, View)}
        for given in dir(type(self)):
            name, _, method = given.partition("_")
            if name in views and hasattr(views[name], method):
                setattr(views[name], method, getattr(self, given))
