"""The demo run once, at a small scale factor, and one session on what it built."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

# The suite uses the demo's own modules, which lie beside it.
sys.path.insert(0, str(Path(__file__).parent))

from project import HERE, dbt, file_sizes, session

SCALE_FACTOR = 0.1
MASTER = "local[2]"


def pytest_configure(config):
    # dbt and pyspark warn of themselves; the suite is about what they do.
    config.addinivalue_line("filterwarnings", "default")


def _run(home, *arguments):
    done = dbt(home, *arguments, master=MASTER, capture_output=True)
    return SimpleNamespace(code=done.returncode, text=done.stdout + done.stderr, output=done.stdout)


def _results(home):
    results = json.loads((home / "target" / "run_results.json").read_text())["results"]
    return {each["unique_id"].split(".")[2]: each for each in results}


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The project after the demo and a second build: everything that the demo and dbt said."""
    home = tmp_path_factory.mktemp("tpch")
    scale = ("--scale-factor", str(SCALE_FACTOR), "--home", str(home), "--master", MASTER)
    demo = subprocess.run([sys.executable, HERE / "demo.py", *scale], capture_output=True, text=True, check=False)
    assert demo.returncode == 0, (demo.stdout + demo.stderr)[-10_000:]
    first_results = _results(home)
    variables = ["--vars", json.dumps(file_sizes(SCALE_FACTOR))]
    again = _run(home, "run", *variables, "--select", "lineitem")
    assert again.code == 0, again.text[-10_000:]
    second_results = _results(home)
    explained = _run(
        home,
        "--quiet",
        "run-operation",
        "zlayout_explain",
        *variables,
        "--args",
        json.dumps(
            {"model": "lineitem", "predicate": "l_shipdate = date'1995-03-01' and l_partkey < 1000", "json": True}
        ),
    )
    yield SimpleNamespace(
        home=home,
        scale_factor=SCALE_FACTOR,
        text=demo.stdout,
        results=first_results,
        second=second_results,
        explained=explained,
    )
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(built):
    # Derby lets one process in at a time, so dbt has ended before this begins.
    found = session(built.home, MASTER)
    yield found
    found.stop()
