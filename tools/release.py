"""Build a release into dist/: `make release`.

Wheel and sdist are built twice, from two exports of the last commit, and must be equal. Beside them
come a bill of materials (CycloneDX) and the checksums of all files. Times are that of the commit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import uuid
from pathlib import Path

TREE = Path(__file__).parent.parent
PACKAGE = "hermes-gateway-doctor"
SUMS = "SHA256SUMS"


def main() -> None:
    """Build everything in a temporary folder, then replace dist/."""
    _refuse_changes()
    os.environ["SOURCE_DATE_EPOCH"] = _git("log", "-1", "--format=%ct")
    with tempfile.TemporaryDirectory() as folder:
        first, second = (build(Path(folder) / name) for name in ("first", "second"))
        refuse_difference(first, second)
        bill_of_materials(first)
        write_sums(first)
        shutil.rmtree(TREE / "dist", ignore_errors=True)
        shutil.copytree(first, TREE / "dist")
    for path in (TREE / "dist").iterdir():
        path.chmod(0o644)  # whatever the umask is
    print((TREE / "dist" / SUMS).read_text(), end="")


def build(folder: Path) -> Path:
    """Export the last commit, build sdist and wheel from it, and return their folder."""
    source, target = folder / "source", folder / "dist"
    source.mkdir(parents=True)
    archive = folder / "source.tar"
    _git("archive", "--output", str(archive), "HEAD")
    with tarfile.open(archive) as tar:
        tar.extractall(source, filter="data")
    _run(sys.executable, "-m", "hatchling", "build", "-d", str(target), cwd=source)
    return target


def refuse_difference(first: Path, second: Path) -> None:
    """Exit if the two builds are not the same, byte for byte."""
    if sums(first) != sums(second):
        differing = sorted({*sums(first).items()} ^ {*sums(second).items()})
        raise SystemExit(f"Two builds of the same commit differ: {differing[0][0]}")


def bill_of_materials(folder: Path) -> Path:
    """Write what the wheel is installed with, as CycloneDX in JSON, and validate it."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    [wheel] = folder.glob("*.whl")
    version = wheel.name.split("-")[1]
    with tempfile.TemporaryDirectory() as place:
        python = Path(place) / "bin" / "python"
        _run(sys.executable, "-m", "venv", "--without-pip", place)
        pip = (sys.executable, "-m", "pip", "--python", str(python))
        _run(*pip, "install", "--quiet", "--no-compile", str(wheel))
        options = ("--output-reproducible", "--spec-version", "1.6", "--no-validate")
        about = ("--pyproject", str(TREE / "pyproject.toml"))
        bom = (sys.executable, "-m", "cyclonedx_py", "environment")
        told = _run(*bom, *options, *about, str(python))
    document = json.loads(told)
    checksum = hashlib.sha256(wheel.read_bytes()).hexdigest()
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, f"{PACKAGE} {checksum}").urn
    document["metadata"]["component"] |= {
        "version": version,
        "purl": f"pkg:pypi/{PACKAGE}@{version}",
        "hashes": [{"alg": "SHA-256", "content": checksum}],
    }
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        raise SystemExit(f"The bill of materials is not valid: {wrong}")
    target = folder / f"{PACKAGE.replace('-', '_')}-{version}.cdx.json"
    target.write_text(text, encoding="utf-8")
    return target


def sums(folder: Path) -> dict[str, str]:
    """The checksum of each file in a folder."""
    files = sorted(folder.iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_sums(folder: Path) -> None:
    """Write the checksums as `sha256sum -c` reads them."""
    lines = [f"{checksum}  {name}\n" for name, checksum in sums(folder).items()]
    (folder / SUMS).write_text("".join(lines))


def _refuse_changes() -> None:
    """Exit if there are uncommitted changes: they would not be in the release."""
    changed = _git("status", "--porcelain").splitlines()
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        name = changed[0].split(maxsplit=1)[1]
        raise SystemExit(f"Not committed: {name}{more}. Commit or remove that first.")


def _git(*words: str) -> str:
    """Run git; no setting of this user may change the bytes of a file."""
    plain = ("-c", "core.autocrlf=false", "-c", "core.eol=lf", "-c", "tar.umask=0022")
    return _run("git", *plain, *words).rstrip("\n")


def _run(*command: str, cwd: Path = TREE) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is not installed.") from None
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise SystemExit(f"{' '.join(command[:4])} failed: {' '.join(last)}")
    return done.stdout


if __name__ == "__main__":
    main()
