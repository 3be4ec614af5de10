"""Checks that there is a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from dbt.adapters.zlayout.errors import UnsupportedError

OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?[^"]*"')
_ADVICE = (
    f"install Java {OLDEST_JAVA} or 21 (Debian and Ubuntu: `apt-get install openjdk-17-jre-headless`; macOS: "
    "`brew install openjdk@17`) and, where several are installed, set JAVA_HOME to it"
)


def require_java() -> None:
    """Checks the Java that pyspark is going to start.

    Raises:
        UnsupportedError: Java is missing or too old. The message says what to install.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise UnsupportedError(f"Spark needs Java, and there is no `java` on the PATH and no JAVA_HOME: {_ADVICE}")
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )  # pyspark starts this same executable
    except (OSError, subprocess.SubprocessError) as error:
        raise UnsupportedError(f"Spark needs Java, and {java} does not run ({error}): {_ADVICE}") from error
    version = feature_version(shown.stderr + shown.stdout)
    if version is not None and version < OLDEST_JAVA:
        raise UnsupportedError(f"Spark needs Java {OLDEST_JAVA} or newer, and {java} is Java {version}: {_ADVICE}")


def feature_version(banner: str) -> int | None:
    """The 17 of ``openjdk version "17.0.15"`` and the 8 of ``java version "1.8.0_392"``; None without a version."""
    match = _VERSION.search(banner)
    if match is None:
        return None
    first, second = int(match[1]), match[2]
    return int(second) if first == 1 and second is not None else first
