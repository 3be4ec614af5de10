"""Where results and errors of the command line go, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import click
from dbt.adapters.zlayout.cli.context import command, results_on_stdout

@click.group()
def group():
    pass

@command(group)
@click.argument("count", type=int)
def say(context, count):
    click.echo("a result" * count)

with results_on_stdout():
    group()
"""


def ended(stdout, count):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "say", str(count)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("count", [1, 100_000])
def test_a_command_whose_reader_has_gone_ends_without_a_word(count):
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as gone:
        gone.wait()
        done = ended(gone.stdin, count)
    assert (done.returncode, done.stderr) == (1, "")


def test_results_that_cannot_be_written_are_an_error_in_one_line():
    with Path("/dev/full").open("wb") as full:
        done = ended(full, 1)
    assert (done.returncode, done.stderr) == (1, "Error: [Errno 28] No space left on device\n")


def test_a_command_runs_with_a_closed_stdout():
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", PROGRAM, "say", "1"]
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
