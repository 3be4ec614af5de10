"""TPC-H's 22 queries and a service desk's over lineitem and orders: hand-picked keys, `zorder='auto'`, Delta, Iceberg.

usage: python benchmarks/advice_queries.py [--scale-factor 1] [--lab FOLDER] [--layouts ours-1 delta-1 …]

Each layout is written and asked in a process of its own, with the same Spark. `auto` sees three draws of constants;
what is measured are queries with others. All answers have to be the same, or the run fails. What a layout read stays in
the lab, so that a run that was ended goes on with the next layout.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from advice_tpch import COLUMNS, HAND_PICKED, Filters, lineitem_lookups, lineitem_scans, orders_lookups, orders_scans
from clustering import ROOT, answer_of, make_tpch
from tpch_queries import drawn

# One of the hand-picked keys of each table; orders have fewer, so that one comes twice.
PAIRS = [
    dict(zip(HAND_PICKED, keys, strict=True))
    for keys in zip(HAND_PICKED["lineitem"], [*HAND_PICKED["orders"], HAND_PICKED["orders"][0]], strict=True)
]
SCANS = {
    "22 queries": {"lineitem": lineitem_scans, "orders": orders_scans},
    "service desk": {"lineitem": lineitem_lookups, "orders": orders_lookups},
}
SUMS = {"lineitem": "sum(l_extendedprice), sum(l_quantity)", "orders": "sum(o_totalprice), max(o_orderkey)"}
# By name: the engine, the keys, and the workloads that are asked.
LAYOUTS = {
    **{f"ours-{number}": ("ours", keys, list(SCANS)) for number, keys in enumerate(PAIRS)},
    **{f"auto-{each.split()[-1]}": ("auto", dict.fromkeys(COLUMNS, "auto"), [each]) for each in SCANS},
    **{
        f"{engine}-{number}": (engine, PAIRS[number], list(SCANS))
        for engine in ("delta", "iceberg")
        for number in (1, 3)
    },
}
ADVISED = range(3)
MEASURED = 100


def filters(rows, table):
    """Filters with values of some rows of a table."""
    first = min((rows / table).glob("*.parquet"))
    group = pq.ParquetFile(first).read_row_group(0, columns=COLUMNS[table])
    plain = [pa.string() if pa.types.is_string_view(each.type) else each.type for each in group.schema]
    return Filters(pa.schema(list(zip(group.column_names, plain, strict=True))), group)


def conditions(rows, workload, seeds):
    """The conditions of a workload on each table, as SQL."""
    made = {}
    for table, scans in SCANS[workload].items():
        on = filters(rows, table)
        made[table] = [each.sql() for seed in seeds for each in scans(on, np.random.default_rng(seed))]
    return made


def queries(rows, workload, draws, scale):
    """What is asked and measured: pairs of a name and SQL."""
    seeds = range(MEASURED, MEASURED + draws)
    if workload == "22 queries":
        texts = {seed: drawn(np.random.default_rng(seed), scale) for seed in seeds}
        return [(f"{workload}/{name}/{seed}", sql) for seed, made in texts.items() for name, sql in made.items()]
    # Its queries are small: more draws.
    found = conditions(rows, workload, range(MEASURED, MEASURED + 5 * draws))
    return [
        (f"{workload}/{table}/{number}", f"select count(*), {SUMS[table]} from {table} where {condition}")
        for table, texts in found.items()
        for number, condition in enumerate(texts)
    ]


def totals(found, workload):
    """Of all queries of a workload: bytes read and opened and files, by table, and seconds."""
    measured = [each for name, each in found["queries"].items() if name.startswith(f"{workload}/")]
    sums = {
        kind: {table: sum(each[kind][table] for each in measured if kind in each) for table in COLUMNS}
        for kind in ("read", "opened", "files")
    }
    return {**sums, "seconds": sum(each["seconds"] for each in measured)}


def told(results):
    """Lines of a table: what each layout read, beside the best hand-picked one of ours."""
    for workload in SCANS:
        asked = [(engine, found, totals(found, workload)) for engine, found, asked in results if workload in asked]
        for table in COLUMNS:
            hand = [sums for engine, _, sums in asked if engine == "ours"]
            best = {kind: min(sums[kind][table] for sums in hand) for kind in ("read", "opened")}
            for engine, found, sums in asked:
                about = found["tables"][table]
                cells = [workload, table, engine, ", ".join(about["zorder"]), about["files"]]
                for kind in ("opened", "read"):
                    cells += [f"{sums[kind][table] / 1e6:,.0f}", f"{sums[kind][table] / best[kind]:.0%}"]
                yield [*cells, sums["files"][table], f"{about['seconds']:.0f}", f"{sums['seconds']:.0f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale-factor", type=float, default=1)
    parser.add_argument("--lab", type=Path, default=ROOT / "build" / "bench-advice", help="where data and tables go")
    parser.add_argument("--files", type=int, default=48, help="of lineitem; orders have a quarter")
    parser.add_argument("--draws", type=int, default=1, help="of constants that are measured")
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS), choices=list(LAYOUTS))
    given = parser.parse_args()
    if not any(each.startswith("ours-") for each in given.layouts):
        parser.error("--layouts needs one of ours-0 … ours-3, which the others are compared with")
    given.lab = given.lab.absolute()
    given.lab.mkdir(parents=True, exist_ok=True)
    rows = make_tpch(given.lab / f"tpch-{given.scale_factor:g}", given.scale_factor, "--compression=ZSTD(3)")
    wanted = {each: queries(rows, each, given.draws, given.scale_factor) for each in SCANS}
    answers, results = {}, []
    for layout in given.layouts:
        engine, keys, workloads = LAYOUTS[layout]
        auto = engine == "auto"
        asked, done = (given.lab / f"{kind}-{given.scale_factor:g}-{layout}.json" for kind in ("asked", "found"))
        if not done.exists():
            about = {
                "keys": keys,
                "conditions": conditions(rows, workloads[0], ADVISED) if auto else {},
                "queries": [each for workload in workloads for each in wanted[workload]],
                "files": {"lineitem": given.files, "orders": given.files // 4},
            }
            asked.write_text(json.dumps(about), "utf-8")
            program = "ours" if auto else engine
            found = answer_of("advice_engines.py", program, rows=rows, asked=asked, lab=given.lab)
            done.write_text(json.dumps(found, indent=1), "utf-8")
        found = json.loads(done.read_text("utf-8"))
        for name, each in found["queries"].items():
            if answers.setdefault(name, each["rows"]) != each["rows"]:
                raise SystemExit(f"{layout} answers {name} with other rows than {given.layouts[0]}")
        results.append((engine, found, workloads))
        print(layout, found["tables"], {each: totals(found, each) for each in workloads}, file=sys.stderr, flush=True)
    names = ["workload", "table", "layout", "keys", "files", "opened MB", "of best", "read MB", "of best"]
    names += ["files opened", "seconds to write", "seconds of all queries"]
    for line in [names, ["---"] * len(names), *told(results)]:
        print("|", " | ".join(map(str, line)), "|")


if __name__ == "__main__":
    main()
