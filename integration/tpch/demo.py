"""The demo: generates TPC-H, runs `dbt build`, shows what five queries read, asks other engines, and
takes advice on its keys."""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path

from generate import HERE, generate
from measure import CLUSTERED, measured
from other_engines import answers
from project import dbt, end_session, file_sizes, session
from queries import queries


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale-factor", type=float, default=1.0, help="of TPC-H; 1 has 6 million items")
    parser.add_argument("--home", type=Path, default=HERE / "data", help="folder for everything that the demo writes")
    parser.add_argument("--master", default="local[*]", help="Spark's master")
    arguments = parser.parse_args()
    start = time.monotonic()
    home, scale_factor = arguments.home.resolve(), arguments.scale_factor

    say(f"1. TPC-H at scale factor {scale_factor:g} as plain Parquet")
    made = generate(home, scale_factor)
    say(f"   {home / 'parquet'} ({'generated' if made else 'there already'}, {time.monotonic() - start:.0f} s)")

    say("\n2. dbt build: staging views, clustered tables, a mart, tests\n")
    for leftover in ("lake", "warehouse", "metastore", "target", "logs"):
        shutil.rmtree(home / leftover, ignore_errors=True)
    if dbt(home, "build", "--vars", json.dumps(file_sizes(scale_factor)), master=arguments.master).returncode:
        sys.exit("dbt build failed; its output is above, its log in " + str(home / "logs"))
    say("\n" + written(home))

    say("\n3. Five queries on the plain Parquet and on the clustered tables\n")
    spark = session(home, arguments.master)
    results = measured(spark, queries(scale_factor))
    say(table(results))

    say("\n   Files that each step of skipping leaves\n")
    say(stages(results))

    say("\n4. Why: the first query, explained\n")
    say(explained(spark, queries(scale_factor)[0]))

    say("\n5. Other engines: lineitem is published as a Delta table, and all get the same rows\n")
    others, total = answers(spark, scale_factor)
    say(aligned(("engine", "rows", "files read", "seconds", "same rows"), [*answered(others, total)]))

    say("\n6. Which keys do these queries want?\n")
    say(advised(spark, queries(scale_factor)))
    end_session(spark)

    say("\n7. The report on all tables\n")
    report = json.dumps({"path": str(home / "report.html")})
    # The results of the build stay in the target folder.
    operation = ("--no-write-json", "run-operation", "zlayout_report", "--args", report)
    if dbt(home, *operation, master=arguments.master).returncode:
        sys.exit("the report failed; its log is in " + str(home / "logs"))
    say(f"\nDone in {time.monotonic() - start:.0f} s. Explain a query of your own:")
    say(f"  cd {HERE} && TPCH_HOME={home} dbt run-operation zlayout_explain --args '{{sql: \"select …\"}}'")
    if not all(each.equal for each in results):
        sys.exit("a query gave other rows than plain Spark")
    if any(each.rows != others[0].rows for each in others):
        sys.exit("another engine gave other rows than Spark")


def written(home):
    """What dbt's run_results say of the tables."""
    results = json.loads((home / "target" / "run_results.json").read_text())["results"]
    lines = []
    for each in results:
        response = each["adapter_response"]
        if response.get("version") is not None:
            phases = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in response["seconds"].items())
            lines.append(
                f"   {each['unique_id'].split('.')[-1]}: {response['_message']}, "
                f"{response['bytes_added'] / 2**20:,.1f} MB, overlap depth {response['overlap_depth']:.2f} ({phases})"
            )
    return "\n".join(lines)


def table(results):
    """The numbers of all queries as text."""
    head = ("query", "files read", "rows in them", "plain Parquet", "no skipping", "skipping", "same rows")
    rows = [
        (
            each.name,
            f"{each.files_read} of {each.files_total}",
            f"{each.rows_read:,} of {each.rows_total:,}",
            f"{each.plain_seconds:.2f} s",
            f"{each.unskipped_seconds:.2f} s",
            f"{each.skipped_seconds:.2f} s",
            "yes" if each.equal else "NO",
        )
        for each in results
    ]
    return aligned(head, rows)


_STEPS = {"partition_stats": "partitions", "column_stats": "statistics", "lookup": "lookup"}


def stages(results):
    """For each query the files that are left after each step."""
    rows = [(each.name, str(each.files_total), *(str(each.stages[name]) for name in _STEPS)) for each in results]
    return aligned(("query", "all files", *_STEPS.values()), rows)


def advised(spark, asked):
    """What the advice says of each table's keys, if the five queries are its workload."""
    from dbt.adapters.zlayout import ZTable

    lines = []
    for name in ("lineitem", "orders"):
        workload = [each.conditions[name] for each in asked if name in each.conditions]
        found = ZTable.for_name(spark, f"{CLUSTERED}.{name}").advise(workload)
        lines.append((name, ", ".join(found.zorder_now), ", ".join(found.zorder), found.why))
    return aligned(("table", "keys", "advised", "why"), lines)


def answered(answers, total):
    """A row for each engine."""
    for each in answers:
        files = "-" if each.files is None else f"{each.files} of {total}"
        same = "yes" if each.rows == answers[0].rows else "NO"
        yield each.engine, f"{len(each.rows):,}", files, f"{each.seconds:.2f} s", same


def aligned(head, rows):
    """Rows of text below their heads."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    cells = [head, tuple("-" * width for width in widths), *rows]
    return "\n".join("   " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


def explained(spark, query):
    from dbt.adapters.zlayout import explain_query

    texts = [scan.to_text() for scan in explain_query(spark, query.sql.format(schema=CLUSTERED))]
    return "\n\n".join("   " + text.replace("\n", "\n   ") for text in texts)


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    main()
