"""Create a self-signed certificate for servers of tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

_FILES = ("-keyout", "key.pem", "-out", "only.pem")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a self-signed certificate for localhost and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    words = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext"
    subprocess.run(
        ["openssl", *words.split(), "subjectAltName=DNS:localhost", *_FILES],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_bytes((folder / "only.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return both
