"""What tests and benchmarks need beside the lock: small Python environments of their own, other engines, their jars."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# By Spark's version: the coordinates of an engine's jars in Maven's spelling. Delta has no release for Spark 4.3 yet.
JARS = {
    "delta": {
        "3.5": ["io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2"],
        "4.0": ["io.delta:delta-spark_2.13:4.0.1", "io.delta:delta-storage:4.0.1"],
    },
    "iceberg": {
        "3.5": ["org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.1"],
        "4.0": ["org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"],
    },
    "hudi": {"3.5": ["org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1"]},
}
TRINO = "io.trino:trino-server:476:tar.gz"
JAVA_OF_TRINO = 24
_JARS = ROOT / "build" / "jars"


def python_of(lock: str) -> Path:
    """Return the interpreter of an environment with what ``.ci/<lock>.lock`` names, made if it is not there."""
    requirements = ROOT / ".ci" / f"{lock}.lock"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    folder = ROOT / f".venv-{lock}"
    python, made = folder / "bin" / "python", folder / ".made-from-lock"
    with (ROOT / ".ci" / f"{lock}.lock").open("rb") as guard:
        # Several suites may want it at the same time.
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not made.exists() or made.read_text("utf-8") != digest:
            uv = [sys.executable, "-m", "uv", "--no-config"]
            subprocess.run([*uv, "venv", "-q", "--clear", "--python", sys.executable, folder], check=True)
            install = [*uv, "pip", "install", "-q", "--no-deps", "--require-hashes", "--python", python]
            subprocess.run([*install, "-r", requirements], check=True)
            made.write_text(digest, "utf-8")
    return python


def jar_settings(engine: str, spark: str) -> dict[str, str]:
    """Return the settings with which a Spark of a version, such as ``3.5``, finds an engine's jars.

    Maven fetches them into ``build/jars``, once. Without Maven, Spark fetches them as it starts.

    Raises:
        SystemExit: The engine has no jars for that Spark, or they cannot be fetched.
    """
    wanted = JARS[engine].get(spark)
    if wanted is None:
        raise SystemExit(f"{engine} has no jars for Spark {spark}; there are some for {', '.join(JARS[engine])}")
    maven = shutil.which("mvn")
    if maven is None:
        return {"spark.jars.packages": ",".join(wanted)}
    return {"spark.jars": ",".join(str(_artifact(maven, each)) for each in wanted)}


def java_home(at_least: int) -> Path | None:
    """Return the home of a Java of at least that version: that of JAVA_HOME, or one below ``/usr/lib/jvm``."""
    for home in (Path(os.environ.get("JAVA_HOME", "/nowhere")), *sorted(Path("/usr/lib/jvm").glob("*"))):
        release = home / "release"
        found = re.search(r'JAVA_VERSION="(\d+)', release.read_text("utf-8")) if release.exists() else None
        if found and int(found[1]) >= at_least:
            return home
    return None


def trino_home() -> Path:
    """Return the folder of Trino's server, 0.9 GB. Maven fetches it, once.

    Raises:
        SystemExit: There is no Maven, or it cannot fetch.
    """
    _, name, version, _ = TRINO.split(":")
    folder = _JARS / f"{name}-{version}"
    if not folder.exists():
        archive = _artifact(_maven("Trino's server"), TRINO)
        with tempfile.TemporaryDirectory(dir=_JARS) as fresh, tarfile.open(archive) as packed:
            packed.extractall(fresh, filter="tar")
            (Path(fresh) / folder.name).rename(folder)
        archive.unlink()
    return folder


def iceberg_rest_classpath() -> str:
    """Return the class path of Iceberg's own REST catalog, without what PySpark's jars have. Maven fetches it, once.

    Raises:
        SystemExit: There is no Maven, or it cannot fetch.
    """
    pom = ROOT / ".ci" / "iceberg-rest.xml"
    folder = _JARS / f"iceberg-rest-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        maven = _maven("Iceberg's REST catalog")
        with tempfile.TemporaryDirectory() as fresh:
            copy = [maven, "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={fresh}"]
            done = subprocess.run(copy, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"Maven cannot fetch what {pom} names: {(done.stdout + done.stderr).strip()[-500:]}")
            shutil.copytree(fresh, folder, dirs_exist_ok=True)
    return f"{folder}/*"


def _maven(wanted: str) -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise SystemExit(f"{wanted} needs Maven, mvn, to get its files")
    return maven


def _artifact(maven: str, coordinates: str) -> Path:
    """Return the file of ``group:name:version``, a jar, or of ``group:name:version:packaging``."""
    _, name, version, packaging = f"{coordinates}:jar".split(":")[:4]
    file = _JARS / f"{name}-{version}.{packaging}"
    if not file.exists():
        copy = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={_JARS}"]
        done = subprocess.run(copy, capture_output=True, text=True, check=False)
        if done.returncode or not file.exists():
            told = (done.stdout + done.stderr).strip()[-500:] or f"there is no {file}"
            raise SystemExit(f"Maven cannot fetch {coordinates}: {told}; try `{' '.join(copy)}`")
    return file
