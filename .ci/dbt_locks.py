"""Writes ``.ci/dbt-*.lock``: what replaces packages of requirements.lock where an older dbt-core is tested."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from requirements import by_name

ROOT = Path(__file__).parents[1]


def write(lock: Path) -> None:
    """Resolves the project with the release of dbt-core that the lock file is named after, and writes what differs."""
    newest = by_name((ROOT / "requirements.lock").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        wanted, resolved = Path(folder, "wanted.txt"), Path(folder, "resolved.lock")
        wanted.write_text(f"dbt-core=={lock.stem.removeprefix('dbt-')}.*\n")
        # uv keeps the versions that the output has already.
        resolved.write_bytes((ROOT / "requirements.lock").read_bytes())
        uv = [sys.executable, "-m", "uv", "--no-config", "pip", "compile", "pyproject.toml", "--group", "dev"]
        options = ["--excludes", ".ci/not-installed.txt", "--constraints", wanted, "--upgrade-package", "dbt-core"]
        form = ["--universal", "--python-version", "3.10", "--generate-hashes", "--no-annotate", "--no-header"]
        subprocess.run([*uv, *options, *form, "--quiet", "-o", resolved], cwd=ROOT, check=True)
        found = by_name(resolved.read_text("utf-8"))
    differing = [name for name in found if _version(found[name]) != _version(newest.get(name, ""))]
    lock.write_text("".join(found[name] for name in differing), "utf-8")


def _version(requirement: str) -> str:
    return requirement.partition("\\")[0].strip()


if __name__ == "__main__":
    for each in sorted((ROOT / ".ci").glob("dbt-*.lock")):
        write(each)
