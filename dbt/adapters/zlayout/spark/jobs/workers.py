"""Checks the Python of Spark's workers: it must exist, have the driver's version, and have this package."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from dbt.adapters.zlayout.__version__ import version as own_version
from dbt.adapters.zlayout.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE = "PYSPARK_PYTHON"
_DESCRIBE = (
    "import sys, numpy, pyarrow, dbt.adapters.zlayout.spark.jobs.workers as found\nprint(*found.described(), sep='\\n')"
)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_NO_MODULE = re.compile(r"No module named '(dbt|pyarrow|numpy|pandas|obstore)\b[^']*'")


def use_driver_python(spark: SparkSession) -> None:
    """In local mode, makes Spark's Python workers use this interpreter, or checks the one that the user chose.

    Raises:
        UnsupportedError: The chosen interpreter does not exist, has another version, or lacks this package.
    """
    context = spark.sparkContext
    if not str(context.master).startswith("local"):
        return
    if _VARIABLE not in os.environ:
        context.pythonExec = sys.executable
    elif (problem := _chosen_problem(os.environ[_VARIABLE])) is not None:
        raise UnsupportedError(problem)


def worker_line(spark: SparkSession) -> str:
    """Runs a worker and returns a line about its Python, for ``dbt debug``.

    Raises:
        UnsupportedError: No worker runs, or its Python or this package has another version than in the driver.
    """
    use_driver_python(spark)
    try:
        program, version, package = spark.sparkContext.parallelize([0], 1).map(_described_to_spark).first()
    except Exception as error:
        raise UnsupportedError(failed_worker_problem(str(error)) or f"Spark's Python workers fail: {error}") from error
    if (problem := _mismatch(program, version, package)) is not None:
        raise UnsupportedError(problem)
    return f"Python of the workers: {program} ({version}, dbt-zlayout {package})"


def described() -> tuple[str, str, str]:
    """Returns the program of this process, its Python version, and the version of this package."""
    return sys.executable, ".".join(map(str, sys.version_info[:3])), own_version


def failed_worker_problem(text: str) -> str | None:
    """Returns what is wrong with the workers' Python and what to do; None if the job failed for another reason.

    Args:
        text: The whole error message of Spark, including causes.
    """
    if (match := _NO_PROGRAM.search(text)) is not None:
        return _no_program(match[1])
    if (match := _NO_MODULE.search(text)) is not None:
        module = match[0].removeprefix("No module named ").strip("'")
        if module.startswith("dbt.adapters.zlayout."):
            return (
                f"the Python of Spark's workers has another release of dbt-zlayout, without the module {module!r}; "
                f"install {own_version} on every machine, and restart Spark"
            )
        return f"the Python of Spark's workers has no module {module!r}; {_advice()}"
    return None


def _described_to_spark(_: int) -> tuple[str, str, str]:
    # Pickled by reference: a worker that runs this function has imported this module, so it has the package.
    return described()


@functools.cache
def _chosen_problem(chosen: str) -> str | None:
    found = shutil.which(chosen)
    if found is None:
        return _no_program(chosen)
    # Links are not resolved: environments may link to the same program but have different packages.
    if Path(found).absolute().parent == Path(sys.executable).parent:
        return None
    # Workers get Spark's own modules from Spark, so the check adds them to the path.
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(Path(pyspark.__file__).parents[1])]))
    asked = subprocess.run(
        [found, "-c", _DESCRIBE], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if asked.returncode:
        why = (asked.stderr.strip().splitlines() or ["it prints nothing"])[-1]
        return f"{_VARIABLE} is {chosen!r}, a Python that cannot run Spark's workers ({why}); {_advice()}"
    return _mismatch(*asked.stdout.split("\n")[:3])


def _mismatch(program: str, version: str, package: str) -> str | None:
    _, driver_version, driver_package = described()
    if version.split(".")[:2] != driver_version.split(".")[:2]:
        return f"Spark's workers run on Python {version} ({program}), and dbt on {driver_version}; {_advice()}"
    if package != driver_package:
        return f"Spark's workers have dbt-zlayout {package} ({program}), and dbt has {driver_package}; {_advice()}"
    return None


def _no_program(chosen: str) -> str:
    return f"Spark's workers cannot run the Python {chosen!r}: there is no such program; {_advice()}"


def _advice() -> str:
    minor = ".".join(map(str, sys.version_info[:2]))
    return (
        f"unset {_VARIABLE} where Spark runs on this machine (workers then run on {sys.executable}); on a cluster set"
        f" it to a Python {minor} that has dbt-zlayout {own_version} on every machine"
    )
