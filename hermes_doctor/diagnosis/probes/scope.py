"""What is examined, and how: the values that all views of `Probes` share."""

from __future__ import annotations

import math

from hermes_doctor.core.home import Home
from hermes_doctor.core.system.cached_calls import CallCache


class Scope:
    """The home that is examined, the options of the command, and the answers so far."""

    def __init__(
        self,
        home: Home,
        *,
        deep: bool = False,
        network: bool = False,
        alone: bool = True,
        paid_requests: bool = True,
        seconds: float = math.inf,
    ) -> None:
        self.home = home
        self.deep = deep
        self.network = network
        self.alone = alone
        """Only this home is examined, so our environment variables apply to it."""
        self.paid_requests = paid_requests
        """Whether requests that cost money are allowed."""
        self.cache = CallCache(deep=deep, seconds=seconds)


class View:
    """The questions of one subject about a home."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.home = scope.home
        self.cache = scope.cache
