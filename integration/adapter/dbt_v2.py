"""The program of dbt v2, which is no Python package: from the wheel that holds it, once for all runs of the suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

VERSION = "2.0.0rc196"
# Of the wheel for Linux on x86_64.
_SHA256 = "36893934afac6c823110c16ad208094f4ac9e2afe56357780138d018a027b0ee"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dbt-zlayout" / f"dbt-{VERSION}"
MANIFEST = Path(__file__).parents[2] / "tests" / "fixtures" / "manifest_v2.json"

PROJECT = {
    "dbt_project.yml": "name: shop\nprofile: shop\nmodels: {shop: {+file_format: parquet}}\n",
    "profiles.yml": "shop: {target: t, outputs: {t: {type: spark, method: thrift, host: localhost, user: u, schema: main}}}",
    "models/orders.sql": "select id k, hash(id) h from {{ source('raw', 'orders') }} where cast(id as int) < 4000",
    "models/shop.yml": """sources:
  - name: raw
    tables: [{name: orders}]
models:
  - name: orders
    config: {materialized: table, alias: of_v2, meta: {zlayout: {zorder: [k], target_file_size: 4000}}}
    columns: [{name: k, data_tests: [not_null]}]
""",
}


def program() -> Path:
    """Returns the program, after a download of 94 MB where it is not in the cache. Skips the test where it cannot be."""
    found = _CACHE / "dbt"
    if not found.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        wanted = _CACHE / "wanted.txt"
        wanted.write_text(f"dbt=={VERSION} --hash=sha256:{_SHA256}\n")
        options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--quiet", "--disable-pip-version-check"]
        call = [sys.executable, "-m", "pip", "download", *options, "-d", str(_CACHE), "-r", str(wanted)]
        done = subprocess.run(call, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"dbt v2 was NOT tested: its program cannot be downloaded: {done.stderr.strip()[-300:]}")
        (wheel,) = _CACHE.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (inside,) = (each for each in archive.namelist() if each.endswith("/scripts/dbt"))
            part = _CACHE / f"part-{os.getpid()}"
            part.write_bytes(archive.read(inside))
        part.chmod(0o755)
        part.rename(found)
        wheel.unlink()
    return found


def run(folder: Path, *words: str, files: dict[str, str], **environment: str) -> str:
    """Runs a command of dbt v2 in a project that is made of some files; returns what it printed."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # Its adapter for Spark asks for the first variable.
    own = {"DBT_ALLOW_EXPERIMENTAL_ADAPTERS": "true", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", **environment}
    call = [str(program()), *words, "--profiles-dir", str(folder), "--project-dir", str(folder)]
    done = subprocess.run(call, check=False, capture_output=True, text=True, cwd=folder, env={**os.environ, **own})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def manifest_of(folder: Path) -> str:
    """Returns the manifest without macros, and without what differs from run to run."""
    content = json.loads((folder / "target" / "manifest.json").read_bytes())
    for key in ("generated_at", "invocation_id", "invocation_started_at"):
        content["metadata"].pop(key)
    return json.dumps({**content, "macros": {}, "docs": {}}, indent=1, sort_keys=True) + "\n"


def with_duckdb(folder: Path) -> dict[str, str]:
    """Returns the environment in which dbt v2 finds DuckDB's driver in the package `duckdb`, and downloads none."""
    import _duckdb

    python = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
    if not python.name.endswith((".so", ".so.1.0")) or not python.exists():
        pytest.skip(f"builds of dbt v2 were NOT tested: the driver needs Python as a shared library, not {python}")
    folder.mkdir()
    (folder / "libduckdb.so").symlink_to(_duckdb.__file__)
    return {"LD_LIBRARY_PATH": str(folder), "LD_PRELOAD": str(python)}
