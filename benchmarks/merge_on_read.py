"""Random upserts to one table, round after round: seconds, bytes and reads of this adapter's two types, Delta and Hudi.

    make bench-merge-on-read ARGS="--lab /somewhere/with/30/GB"

Each engine runs in a process of its own with two cores, on Spark 3.5, for which all three have a release; jars come
with Maven. Every round upserts the same share of random keys; every few rounds a query reads the whole table,
and once more after a compaction.
"""

import argparse
import sys
from pathlib import Path

from clustering import ROOT, answer_of

ENGINES = ["copy_on_write", "merge_on_read", "delta", "hudi"]


def compare(given):
    print(f"\n**{given.share:.2%}** of {given.rows:,} rows a round, {given.rounds} rounds\n")
    reads = [str(each) for each in range(0, given.rounds + 1, given.read_every)]
    columns = ["seconds a round", "MB a round", "times the logs", *(f"read at {each}" for each in reads)]
    columns += ["read compacted", "compaction s", "table MB"]
    print("| engine |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|", flush=True)
    for engine in given.engines:
        options = {name: getattr(given, name) for name in ("rows", "share", "rounds", "tries", "read_every")}
        found = answer_of("merge_on_read_engines.py", engine, lab=given.lab, **options)
        seconds = sorted(found["seconds"])[len(found["seconds"]) // 2]
        cells = [engine, f"{seconds:.1f}", f"{sum(found['bytes']) / len(found['bytes']) / 1e6:.2f}"]
        logs = sum(found["log_bytes"])
        cells += [f"{sum(found['data_bytes']) / logs:.1f}" if logs else ""]
        cells += [f"{found['reads'][each]:.2f}" for each in [*reads, "compacted"]]
        cells += [f"{found['compaction']:.1f}", f"{found['table_bytes'] / 1e6:.0f}"]
        print("|", " | ".join(cells), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab", type=Path, default=ROOT / "build" / "bench-merge-on-read")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.0001], help="of the rows, a round")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tries", type=int, default=2, help="of each read, of which the best counts")
    parser.add_argument("--read-every", type=int, default=5, help="rounds between two full reads")
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    given = parser.parse_args()
    if given.rounds % given.read_every:
        parser.error("--rounds has to be a multiple of --read-every: the last round is compared with the compaction")
    given.lab = given.lab.absolute()
    given.lab.mkdir(parents=True, exist_ok=True)
    for share in given.shares:
        given.share = share
        compare(given)


if __name__ == "__main__":
    sys.exit(main())
