"""A stream is killed, with its JVM, and started again: every batch is in the table exactly once."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import fault_stream
import pytest
from fault_points import changes
from fault_runs import Runs

HERE = Path(__file__).parent


class Streams:
    """Streams over one table, each from the state before the first.

    Args:
        folder: A folder of its own.
    """

    def __init__(self, folder: Path) -> None:
        self.base, self._saved = folder / "base", folder / "saved"
        self.base.mkdir()
        ended = self._process("prepare")
        assert ended.returncode == 0, ended.stderr
        shutil.copytree(self.base, self._saved)

    def restore(self) -> None:
        """Puts table, source and metastore back; the stream has no checkpoint."""
        shutil.rmtree(self.base)
        shutil.copytree(self._saved, self.base)

    def run(self, at: int = 0, dies_in: int = -1) -> dict | None:
        """What one start of the stream came to; None when it was killed."""
        ended = self._process("run", str(at), str(dies_in))
        if ended.returncode == -signal.SIGKILL:
            return None
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout.split("RESULT ")[-1])

    def changes(self) -> int:
        """How many changes a stream makes that nobody kills."""
        self.restore()
        check(self.run())
        return len(changes(self.base / "order.json"))

    def _process(self, step: str, *numbers: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(HERE / "fault_stream.py"), step, str(self.base), *numbers]
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
        told = {**os.environ, "PYTHONPATH": path, "ZLAYOUT_FAULTS_BASE": str(self.base)}
        return subprocess.run(
            command, env=told, cwd=self.base, capture_output=True, text=True, timeout=300, check=False
        )


def check(result: dict | None) -> None:
    """Every batch is in, in its order, and none came twice."""
    assert result is not None
    assert dict(result["rows"]) == fault_stream.wanted()
    assert len(result["rows"]) == len(fault_stream.wanted())
    assert result["merges"] == len(fault_stream.BATCHES)


def kill(streams: Streams, at: int, dies_in: int) -> str | None:
    """One kill, and the start after it."""
    streams.restore()
    if streams.run(at, dies_in) is not None:
        return None
    last = changes(streams.base / "order.json")[-1]
    (streams.base / "order.json").unlink(missing_ok=True)
    (streams.base / "order.log").unlink(missing_ok=True)
    check(streams.run())
    return f"died at {last}" if at else f"died after the commit of batch {dies_in}"


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    return Streams(tmp_path_factory.mktemp("streams"))


@pytest.mark.slow
def test_a_killed_stream_goes_on_and_takes_every_batch_once(streams, seed, request):
    runs = Runs(request.config, "stream")
    rng = random.Random(seed)
    kills = [(0, batch) for batch in range(len(fault_stream.BATCHES))]
    if runs.full:
        kills += [(at, -1) for at in range(1, 1 + streams.changes())]
    else:
        # Changes of the first batch: there are surely as many.
        kills = [rng.choice(kills), *((rng.randrange(1, 15), -1) for _ in range(runs.count(few=1, sample=2) - 1))]
    runs.each(kills, lambda at, dies_in: kill(streams, at, dies_in))
    runs.check()
