"""A full clustering of the same rows by this adapter, Delta, Iceberg and Hudi: seconds, bytes, rows that readers open.

    make bench-clustering ARGS="--lab /somewhere/with/30/GB"

Everything it needs comes by name: the jars with Maven, or with Spark itself where there is no Maven, Spark 3.5 (for
which all three have a release) from PyPI, lineitem from tpchgen-cli. Engines run one after the other, each in a
process of its own with two cores.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / ".ci"))
import environments  # noqa: E402 - tests get the jars in the same way
from requirements import replaced  # noqa: E402 - CI installs other Sparks in the same way

SPARK = "3.5"
KEYS = {
    "lineitem": (["l_shipdate", "l_partkey"], "l_orderkey"),
    "events": (["ts", "customer_id", "amount", "region"], "event_id"),
}
ENGINES = ["ours", "delta", "iceberg", "hudi"]
WAYS_FROM_A_QUERY = {"first build": "first", "with its cuts": "again"}
MASTER_PORT = 17_077
EVENTS_A_FILE = 1_000_000
# A text that does not compress.
NOTE_LETTERS = 48
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-", "S1")


def environment(lab):
    """Python with Spark 3.5, everything else as the lock says."""
    python = lab / "env" / "bin" / "python"
    if not python.exists():
        uv = [sys.executable, "-m", "uv", "--no-config"]
        lock, spark = (ROOT / each for each in ("requirements.lock", f".ci/pyspark-{SPARK}.lock"))
        wanted = lab / "wanted.lock"
        wanted.write_text(replaced(lock.read_text("utf-8"), spark.read_text("utf-8")), "utf-8")
        subprocess.run([*uv, "venv", "-q", "--python", sys.executable, lab / "env"], check=True)
        install = [*uv, "pip", "install", "-q", "--compile-bytecode", "--no-deps", "--python", python]
        subprocess.run([*install, "--require-hashes", "-r", wanted], check=True)
        subprocess.run([*install, "--editable", ROOT], check=True)
    return python


def make_tpch(folder, scale, *options):
    """TPC-H's tables, a folder each."""
    if not (folder / "done").exists():
        tool = Path(sys.executable).with_name("tpchgen-cli")
        sizes = ["-s", f"{scale:g}", f"--parts={max(2, round(3.2 * scale))}"]
        subprocess.run([tool, "parquet", *sizes, *options, f"--output-dir={folder}", "--quiet"], check=True)
        (folder / "done").touch()
    return folder


def make_lineitem(lab, scale):
    return make_tpch(lab / f"tpch-{scale:g}", scale, "--tables=lineitem") / "lineitem"


def make_events(lab, count):
    """Bursts in time, customers by Zipf's law, amounts lognormal, twelve regions of unequal size, and some payload."""
    folder = lab / f"events-{count}"
    if (folder / "done").exists():
        return folder / "rows"
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(11)
    bursts = np.sort(rng.integers(0, 365 * 86_400, 400))
    shares = rng.dirichlet(np.full(12, 0.6))
    regions = np.array([f"region-{each:02d}" for each in range(12)])
    for start in range(0, count, EVENTS_A_FILE):
        rows = min(EVENTS_A_FILE, count - start)
        quiet = rng.integers(0, 365 * 86_400, rows)
        loud = bursts[rng.integers(0, len(bursts), rows)] + rng.exponential(900, rows).astype(np.int64)
        seconds = np.where(rng.random(rows) < 0.3, quiet, loud)
        micros = 1_704_067_200_000_000 + seconds * 1_000_000 + rng.integers(0, 1_000_000, rows)
        customers = rng.zipf(1.3, rows) % 200_000
        table = pa.table(
            {
                "event_id": pa.array(np.arange(start, start + rows)),
                "ts": pa.array(micros, pa.timestamp("us", tz="UTC")),
                "customer_id": pa.array([f"cust-{each * 7919 % 200_000:06d}" for each in customers.tolist()]),
                "amount": pa.array(np.round(rng.lognormal(3.5, 1.4, rows), 2)),
                "region": pa.array(regions[rng.choice(12, rows, p=shares)]),
                "kind": pa.array(np.array(["view", "cart", "buy", "back"])[rng.integers(0, 4, rows)]),
                "session_id": pa.array(rng.integers(0, 1 << 40, rows)),
                "note": pa.array(
                    LETTERS[rng.integers(0, len(LETTERS), (rows, NOTE_LETTERS))].view(f"S{NOTE_LETTERS}")[:, 0]
                ).cast(pa.string()),
            }
        )
        pq.write_table(table, folder / "rows" / f"{start // EVENTS_A_FILE:03d}.parquet")
    (folder / "done").touch()
    return folder / "rows"


def queries(rows, keys, count, seed):
    """Ranges, points and both at once, with constants drawn from the rows; a condition is (key, low, high)."""
    rng = np.random.default_rng(seed)
    paths = sorted(rows.glob("*.parquet"))
    table = pa.concat_tables(
        [pq.read_table(path, columns=keys).slice(int(rng.integers(0, 1_000)), 30_000) for path in paths]
    )
    values = [sorted(table.column(name).to_pylist()) for name in keys]

    def ranged(key, share):
        start = int(rng.integers(0, int(len(values[key]) * (1 - share))))
        return key, values[key][start], values[key][min(len(values[key]) - 1, start + int(share * len(values[key])))]

    def point(key):
        value = values[key][int(rng.integers(0, len(values[key])))]
        return key, value, value

    if len(keys) == 2:
        kinds = [
            lambda: [ranged(0, 0.02)], lambda: [point(1)], lambda: [ranged(1, 0.01)],
            lambda: [ranged(0, 0.05), ranged(1, 0.05)], lambda: [ranged(0, 0.1), point(1)],
        ]  # fmt: skip
    else:
        kinds = [
            lambda: [ranged(0, 0.02)], lambda: [point(1)], lambda: [ranged(0, 0.05), point(3)],
            lambda: [point(1), ranged(0, 0.1)], lambda: [ranged(2, 0.02)],
            lambda: [ranged(2, 0.05), ranged(0, 0.05), point(3)],
        ]  # fmt: skip
    return [kinds[number % len(kinds)]() for number in range(count)]


def bounds_of(files, keys):
    """For files and for row groups: the bounds of each key and the rows; a part without bounds is always read."""
    by_file, by_group = [], []
    for path in files:
        footer = pq.read_metadata(path)
        numbers = {footer.schema.column(number).path: number for number in range(footer.num_columns)}
        groups = []
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            statistics = [group.column(numbers[key]).statistics for key in keys]
            ends = [(each.min, each.max) if each is not None and each.has_min_max else None for each in statistics]
            groups.append((ends, group.num_rows))
        by_group += groups
        whole = []
        for position in range(len(keys)):
            ends = [each[0][position] for each in groups]
            whole.append(None if None in ends else (min(each[0] for each in ends), max(each[1] for each in ends)))
        by_file.append((whole, footer.num_rows))
    return by_file, by_group


def opened(parts, wanted):
    """The share of the rows that a reader of bounds opens, on average over queries."""
    total = sum(rows for _, rows in parts)
    shares = []
    for conditions in wanted:
        rows = 0
        for ends, count in parts:
            if all(
                ends[key] is None or (ends[key][0] <= high and ends[key][1] >= low) for key, low, high in conditions
            ):
                rows += count
        shares.append(rows / total)
    return float(np.mean(shares))


def run(engine, rows, name, files, lab, master="local[2]"):
    keys, identifier = KEYS[name]
    options = {"keys": ",".join(keys), "identifier": identifier, "files": files, "master": master}
    return answer_of("clustering_engines.py", engine, rows=rows, lab=lab, **options)


def answer_of(program, name, *, lab, **options):
    """What a program prints of an engine, in a process of its own with Spark 3.5 and the engine's jars."""
    command = [environment(lab), ROOT / "benchmarks" / program, name, "--lab", lab]
    for option, value in options.items():
        command += [f"--{option.replace('_', '-')}", str(value)]
    other = name.partition("_")[0]
    command += ["--jars", json.dumps(environments.jar_settings(other, SPARK) if other in environments.JARS else {})]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"{program} of {name} failed:\n{done.stderr[-4000:]}")
    return json.loads(lines[-1].removeprefix("RESULT "))


@contextlib.contextmanager
def standalone(lab, workers):
    """A Spark master and workers of one core each, in processes of their own; yields the master's URL."""
    if not workers:
        yield "local[2]"
        return
    home = subprocess.run(
        [environment(lab), "-c", "import pyspark; print(pyspark.__path__[0])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    url = f"spark://127.0.0.1:{MASTER_PORT}"
    deploy = [f"{home}/bin/spark-class", "org.apache.spark.deploy"]
    master = [f"{deploy[1]}.master.Master", "--host", "127.0.0.1", "--port", str(MASTER_PORT), "--webui-port", "0"]
    worker = [f"{deploy[1]}.worker.Worker", "-c", "1", "-m", "4g", "--webui-port", "0", "-d", str(lab / "work"), url]
    started = []
    try:
        for arguments in (master, *[worker] * workers):
            with (lab / "standalone.log").open("ab") as log:
                started.append(
                    subprocess.Popen([deploy[0], *arguments], stdout=log, stderr=log, start_new_session=True)
                )
            time.sleep(5)
        yield url
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGTERM)


def compare(name, rows, files, engines, lab, master):
    keys = KEYS[name][0]
    wanted = queries(rows, keys, 300, seed=files)
    print(f"\n**{name}**, about {files} files\n")
    print("| engine | seconds | files | MB | rows opened by file | by row group | worker MiB |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for engine in engines:
        found = run(engine, rows, name, files, lab, master)
        by_file, by_group = bounds_of(found["files"], keys)
        cells = [engine, found["seconds"], len(found["files"]), round(found["bytes"] / 1e6)]
        cells += [f"{100 * opened(parts, wanted):.1f} %" for parts in (by_file, by_group)]
        print("|", " | ".join(map(str, [*cells, found.get("worker_mib", "")])), "|", flush=True)


def from_query(name, rows, files, lab):
    found = run("query", rows, name, files, lab)
    plain = found["plain"]
    told = [f"{word} {found[key]:.1f} s ({found[key] / plain:.2f}x)" for word, key in WAYS_FROM_A_QUERY.items()]
    print(f"\n{name} from a query: plain Parquet {plain:.1f} s, {', '.join(told)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--lab", type=Path, default=ROOT / "build" / "bench-clustering", help="where data and tables go"
    )
    parser.add_argument("--scale", type=float, default=5, help="of lineitem")
    parser.add_argument("--events", type=int, default=12_000_000)
    parser.add_argument("--files", type=int, nargs="+", default=[32])
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--sets", nargs="+", default=list(KEYS), choices=list(KEYS))
    parser.add_argument(
        "--workers", type=int, default=0, help="of a standalone Spark cluster, a core each; 0 is local[2]"
    )
    parser.add_argument("--no-query", action="store_true", help="without tables from queries")
    given = parser.parse_args()
    given.lab = given.lab.absolute()
    given.lab.mkdir(parents=True, exist_ok=True)
    for name in given.sets:
        rows = make_lineitem(given.lab, given.scale) if name == "lineitem" else make_events(given.lab, given.events)
        for files in given.files:
            with standalone(given.lab, given.workers) as master:
                compare(name, rows, files, given.engines, given.lab, master)
        if not given.no_query:
            from_query(name, rows, given.files[0], given.lab)


if __name__ == "__main__":
    main()
