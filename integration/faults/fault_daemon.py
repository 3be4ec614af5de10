"""Spark's daemon of Python workers, with the fault points in every worker that it forks."""

import os
from pathlib import Path

from fault_points import FaultPoints
from pyspark import daemon

if __name__ == "__main__":
    base = Path(os.environ["ZLAYOUT_FAULTS_BASE"])
    FaultPoints(base / "tables", base / "order.json", "worker").install()
    daemon.manager()
