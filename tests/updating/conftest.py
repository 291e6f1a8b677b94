"""What the tests of updates begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import support
from tests.updating import environments


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with a Hermes of its own."""
    home = support.healthy(tmp_path / "home")
    environments.make(home)
    return home
